import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { AttemptRefSchema, RunWorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createServiceClient } from '../../common/client.ts';
import { createLogger } from '../../common/logger.ts';
import { type RunningServer, startServer } from '../../common/server.ts';
import { shell } from '../adapters/shell.ts';
import { type ArtifactIndex, ArtifactStore } from '../artifacts/artifact-store.ts';
import type { HarnessExecutorContext } from '../context.ts';
import { keepArtifacts } from './keep-artifacts.ts';

const KEEP_MS = 200;

describe('what is kept of a sandbox', () => {
  let folder: string;
  let server: RunningServer;
  let listing: string;
  let dropped: bigint;
  let exitCode: number;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-keep-'));
    dropped = 0n;
    exitCode = 0;
    server = await startServer({
      ...{ host: '127.0.0.1', port: 0, services: [RuntimeService.typeName] },
      routes: (router) =>
        router.service(RuntimeService, {
          async *exec() {
            yield { event: { case: 'stdout', value: Buffer.from(listing) } };
            yield { event: { case: 'result', value: { droppedOutputBytes: dropped, exitCode } } };
          },
          async getFile({ path }, { signal }) {
            if (path.endsWith('slow')) await new Promise((done) => signal.addEventListener('abort', done));
            if (path.includes('none')) throw new Error('it is not there');
            return { content: Buffer.from(path) };
          },
        }),
    });
  });
  afterEach(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });

  async function kept(names: string[], keepMs = 30_000, artifacts = ['/out']): Promise<ArtifactIndex> {
    listing = names.map((name) => `${name}\0`).join('');
    const store = await ArtifactStore.open(folder);
    const runtimes = createServiceClient(RuntimeService, `http://127.0.0.1:${server.port}`);
    const ctx = { runtimes, artifacts: store, log: createLogger('test', 'silent') };
    const ref = create(AttemptRefSchema, { sessionId: 's-0', attempt: 1 });
    const work = create(RunWorkSchema, { runtimeId: 'rt', harness: { name: 'shell', artifacts } });
    const { signal } = new AbortController();
    await keepArtifacts(ctx as HarnessExecutorContext, { ref, work, again: false }, shell, signal, keepMs);
    return await store.list('s-0', 1);
  }

  it('is what could be read in time: a run is not lost for it', async () => {
    const beganMs = performance.now();
    const { artifacts, problems } = await kept(['./a', './slow', './b', ''], KEEP_MS);
    expect(performance.now() - beganMs).to.be.lessThan(20 * KEEP_MS);
    expect(artifacts.map(({ path }) => path)).to.deep.equal(['/out/a']);
    expect(problems).to.deep.equal(['not all files could be read in time']);
  });

  it('is told to be nothing where the task names a file that is not there', async () => {
    const { artifacts, problems } = await kept(['./a', '', '', '.', ''], 30_000, ['/out', '/ou', '/one']);
    expect(artifacts.map(({ path }) => path)).to.deep.equal(['/out/a', '/one']);
    expect(problems).to.deep.equal(['/ou: no file is there']);
  });

  it('is what was listed whole', async () => {
    dropped = 1n;
    const names = Array.from({ length: 200 }, (_, i) => `./${i}${'x'.repeat(20_000)}`);
    const { artifacts, problems } = await kept([...names, '', './other']);
    expect(artifacts.length).to.be.within(10, 199);
    expect(problems).to.deep.equal(['not all files could be listed']);
  });

  it('is not told to be nothing where nobody could look', async () => {
    exitCode = 127;
    expect((await kept([])).problems).to.deep.equal(['not all files could be listed']);
  });

  it('does not tell of every one of many files that cannot be read', async () => {
    const names = Array.from({ length: 500 }, (_, i) => `./none-${i}`);
    const { problems } = await kept([...names, '']);
    expect(problems.length).to.be.within(1, 70);
    expect(readdirSync(folder)).to.deep.equal(['s-0.1']);
  });
});
