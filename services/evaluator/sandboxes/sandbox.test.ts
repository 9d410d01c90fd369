import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { AttemptRefSchema, EvaluateWorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createServiceClient } from '../../common/client.ts';
import { PolarError } from '../../common/errors.ts';
import { type RunningServer, startServer } from '../../common/server.ts';
import type { EvaluatorContext } from '../context.ts';
import { liveSandbox, withFreshSandbox } from './sandbox.ts';

describe('sandboxes of evaluations', () => {
  let server: RunningServer;
  before(async () => {
    server = await startServer({
      ...{ host: '127.0.0.1', port: 0, services: [RuntimeService.typeName] },
      routes: (router) =>
        router.service(RuntimeService, {
          acquireRuntime() {
            throw new PolarError('RUNTIME_LIMIT', 'this node has 1000 sandboxes already');
          },
          renewLease: () => ({ runtime: {} }),
          // biome-ignore lint/correctness/useYield: it has nothing to say
          async *exec() {
            throw new PolarError('RUNTIME_BUSY', 'runtime rt is busy with another command');
          },
        }),
    });
  });
  after(() => server.close());

  it('that are busy or too many are no fault of a task', async () => {
    const runtimes = createServiceClient(RuntimeService, `http://127.0.0.1:${server.port}`);
    const ctx = { runtimes } as EvaluatorContext;
    const work = create(EvaluateWorkSchema, { runtimeId: 'rt' });
    const evaluation = {
      ref: create(AttemptRefSchema),
      work,
      remainingMs: () => 1_000,
      kept: { outcome: undefined },
    };
    const { signal } = new AbortController();
    const live = await liveSandbox(ctx, evaluation, signal);
    const busy = await live.exec(['true'], 1_000).catch((thrown) => thrown);
    expect([busy.reason, busy.spec.infrastructure]).to.deep.equal(['SANDBOX_FAILED', true]);
    const none = await withFreshSandbox(ctx, evaluation, signal, async () => 1).catch((thrown) => thrown);
    expect([none.reason, none.spec.infrastructure]).to.deep.equal(['SANDBOX_FAILED', true]);
    expect(none.message).to.contain('1000 sandboxes');
  });
});
