// Sessions follow what their engine bears: a real proxy reads the engine's metrics, a real scheduler goes by what it tells.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { WaitReason } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { startFakeNode } from '../support/fake-node.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { sessionsOf, startScheduler, taskSpec, until } from '../support/scheduler.ts';

/** An engine of which only the metrics are asked. */
async function startEngine(): Promise<{ url: string; waiting: number } & AsyncDisposable> {
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') return response.writeHead(404).end();
    return response.end(`vllm:num_requests_waiting{engine="0"} ${engine.waiting}\n`);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const engine = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    waiting: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return engine;
}

describe('engine pressure', function () {
  this.timeout(120_000);

  it('lowers the sessions that run when calls queue in the engine, and raises them again', async () => {
    await using engine = await startEngine();
    const inference = { max_sessions: 4, min_sessions: 2 };
    await using proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm', inference });
    const nodes = [{ id: 'n1', inference: { ...inference, base_url: engine.url } }];
    await using scheduler = await startScheduler(proxy.nats.url, {}, { gateway: { nodes } });
    await scheduler.leading;
    const ends: (() => void)[] = [];
    const slots = { prepareSlots: 8, runSlots: 8, readySlots: 8 };
    await using node = await startFakeNode(proxy.nats.url, { id: 'n1', ...slots });
    const { run } = node.on;
    node.on.run = async (work) => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return await run(work);
    };
    const { sessionIds } = await scheduler.client.submitTask({ spec: taskSpec('t', { numSamples: 6 }) });
    const runs = async (): Promise<string[]> =>
      (await sessionsOf(scheduler.client, 't'))
        .filter(({ state }) => state === SessionState.RUNNING)
        .map(({ sessionId }) => sessionId);
    const waiting = async () => {
      const running = await runs();
      const sessionId = sessionIds.findLast((id) => !running.includes(id)) ?? '';
      return (await scheduler.client.getSession({ sessionId })).waiting;
    };
    await until('as many run as may', async () => (await runs()).length === 4 && ends.length === 4);
    expect((await waiting())?.reason).to.equal(WaitReason.ENGINE_CAP);

    engine.waiting = 20;
    await until(
      'the scheduler has heard of it',
      async () => (await waiting())?.reason === WaitReason.ENGINE_PRESSURE,
    );
    expect((await waiting())?.message).to.equal(
      `the engine ${engine.url} bears 3 sessions at the moment, of max_sessions 4`,
    );
    expect(await runs()).to.have.length(4);
    ends.shift()?.();
    await until('one has ended', async () => (await runs()).length === 3);
    expect((await waiting())?.reason).to.equal(WaitReason.ENGINE_PRESSURE);

    engine.waiting = 0;
    await until('one more runs', async () => ends.length === 4);
    node.on.run = run;
    await scheduler.client.cancelTask({ taskId: 't' });
    for (const end of ends) end();
  });
});
