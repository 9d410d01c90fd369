// Retries of tasks on their way into the archive and out of it, on a real nats-server with a node that stands in for a real
// one.
import { expect } from 'chai';
import { RetryOnly } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { failed, startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { groupOf, startScheduler, taskSpec, until } from '../support/scheduler.ts';

const IDS = Array.from({ length: 24 }, (_, i) => `t${i}`);
const ROUNDS = 6;

describe('a retry of tasks that go to the archive', () => {
  let nats: TestNats;
  let bus: Bus;
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
  });
  afterEach(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  it('gives each of their sessions an attempt, and keeps no slot, wherever they are', async () => {
    const on = { prepare: () => failed('prepare', 'PREPARE_TIMEOUT') };
    await using node = await startFakeNode(nats.url, { prepareSlots: 4, on });
    await using scheduler = await startScheduler(nats.url);
    const { client } = scheduler;
    const spec = { numSamples: 2, maxAttempts: 1 };
    await client.submitTasks({ tasks: IDS.map((taskId) => ({ spec: taskSpec(taskId, spec) })) });
    await until('they are archived', async () => {
      const { state } = await bus.jsm.streams.info(STREAMS.archivedTasks.name);
      return state.messages === IDS.length;
    });
    for (let round = 1; round <= ROUNDS; round++) {
      // Those of the first round are in the archive; of the others, some are announced and some are being archived.
      const retry = (taskId: string) => client.retrySessions({ taskId, only: RetryOnly.FAILED });
      const retried = await Promise.all(IDS.map(retry));
      expect(retried.map(({ sessionIds }) => sessionIds.length)).to.deep.equal(IDS.map(() => 2));
      await Promise.all(IDS.map((taskId) => groupOf(bus, taskId, undefined, `g${round}`)));
    }
    expect(node.taken.filter(({ kind }) => kind.case === 'prepare')).to.have.length(
      2 * IDS.length * (ROUNDS + 1),
    );
    expect((await client.listQueues({})).queues).to.deep.equal([]);
    expect((await client.listNodes({})).nodes[0]).to.include({ preparing: 0, ready: 0, running: 0 });
  });
});
