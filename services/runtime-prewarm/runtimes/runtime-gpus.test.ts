import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { PolarError } from '../../common/errors.ts';
import type { Box } from '../backends/backend.ts';
import type { AcquireOptions } from '../domain/lease.ts';
import type { SandboxPlan } from '../domain/plan.ts';
import { NodeGpus } from './gpus.ts';
import { Runtime } from './runtime.ts';
import { RuntimeGpus } from './runtime-gpus.ts';

describe('the GPUs of a sandbox', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-runtime-gpus-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** How many are free while a sandbox that has one is being deleted, and how many behind it. */
  const freeAround = async (when: 'from_creation' | 'by_command'): Promise<number[]> => {
    const all = { gpus: [{ id: 'a', device: '/dev/a' }], common: [], asFiles: false };
    const node = new NodeGpus({ file: join(folder, 'gpus.json'), all, shared: false, outliving: [] });
    const deleted = Promise.withResolvers<void>();
    const deleting = Promise.withResolvers<void>();
    const box = {
      async remove() {
        deleting.resolve();
        await deleted.promise;
      },
    } as unknown as Box;
    const runtime = new Runtime('rt', {} as SandboxPlan, {} as AcquireOptions, box, true);
    const gpus = new RuntimeGpus(node, { owner: 'one', backends: ['any'] }, 1, when);
    await gpus.granted(new AbortController().signal);
    runtime.giveGpus(gpus);
    const removed = runtime.remove(new PolarError('RUNTIME_LOST', 'it was released'));
    await deleting.promise;
    const meanwhile = node.free;
    deleted.resolve();
    await removed;
    return [meanwhile, node.free];
  };

  it('are free when its commands have ended: its files may take long to delete', async () => {
    expect(await freeAround('by_command')).to.deep.equal([1, 1]);
  });

  it('are free when it is gone, where it has them from its creation on', async () => {
    expect(await freeAround('from_creation')).to.deep.equal([0, 1]);
  });
});
