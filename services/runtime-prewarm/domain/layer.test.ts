import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { RuntimeSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { isLayered, layerKey } from './layer.ts';
import { planOf, type SandboxPlan } from './plan.ts';

type Init = MessageInitShape<typeof RuntimeSpecSchema>;
const plan = (init: Init): SandboxPlan =>
  planOf(create(RuntimeSpecSchema, init), { runtime: undefined, backend: 'bubblewrap' }, false);
const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });
const upload = (bytes: number) => ({
  step: { case: 'uploadFile' as const, value: { target: '/f', content: Buffer.alloc(bytes) } },
});

describe('isLayered', () => {
  it('is so with a command or many bytes, and not without', () => {
    expect(isLayered(plan({ prepare: [upload(10), exec('true')] }))).to.equal(true);
    expect(isLayered(plan({ prepare: [upload(1 << 20)] }))).to.equal(true);
    expect(isLayered(plan({ prepare: [upload(10)] }))).to.equal(false);
    expect(isLayered(plan({}))).to.equal(false);
  });

  it('is not so where the task refuses it, or a disk of its own holds what is written', () => {
    expect(isLayered(plan({ prepare: [exec('true')], prepareEach: true }))).to.equal(false);
    expect(isLayered(plan({ prepare: [exec('true')], storageMb: 64 }))).to.equal(false);
  });
});

describe('layerKey', () => {
  const base: Init = { prepare: [exec('true')], env: { A: '1', B: '2' } };
  const key = (init: Init, image = 'host:1') => layerKey(plan(init), image);

  it('is the same for the same, in whatever order the environment stands', () => {
    expect(key({ ...base, env: { B: '2', A: '1' } })).to.equal(key(base));
    expect(key(base)).to.match(/^[0-9a-f]{32}$/);
  });

  it('differs with whatever a preparation depends on', () => {
    const others: Init[] = [
      { ...base, prepare: [exec('true'), exec('true')] },
      { ...base, prepare: [exec('false')] },
      { ...base, prepare: [upload(1), exec('true')] },
      { ...base, env: { A: '1' } },
      { ...base, workdir: '/other' },
      { ...base, memoryMb: 64 },
      { ...base, cpus: 1 },
      { ...base, image: 'debian' },
    ];
    const keys = [key(base), key(base, 'host:2'), ...others.map((init) => key(init))];
    expect(new Set(keys).size).to.equal(keys.length);
  });
});
