// Sessions that ask for GPUs, with a real nats-server and nodes that answer over NATS: no node is given more than it has.
import { expect } from 'chai';
import { SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { WaitReason } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { type FakeNode, ran, startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { sessionsOf, startScheduler, type TestScheduler, taskSpec, until } from '../support/scheduler.ts';

const SLOTS = { prepareSlots: 8, runSlots: 8, readySlots: 8, evaluateSlots: 8 };

describe('scheduler: GPUs', () => {
  let nats: TestNats;
  let scheduler: TestScheduler;
  let node: FakeNode;
  let held: (() => void)[];
  before(async () => {
    nats = await startNats();
    scheduler = await startScheduler(nats.url);
    node = await startFakeNode(nats.url, { ...SLOTS, gpus: 2, backends: ['bubblewrap', 'docker'] });
    await until('the node is known', async () => (await scheduler.client.listNodes({})).nodes.length === 1);
  });
  beforeEach(() => {
    held = [];
    node.on.run = async (work) => {
      await new Promise<void>((resolve) => held.push(resolve));
      return await ran(work);
    };
  });
  after(async () => {
    for (const end of held) end();
    await node[Symbol.asyncDispose]();
    await scheduler[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  const submit = async (taskId: string, backend: string, gpus: number, numSamples = 1) => {
    const runtime = { backend, gpus, ...(backend === 'docker' && { image: 'x' }) };
    return (await scheduler.client.submitTask({ spec: taskSpec(taskId, { runtime, numSamples }) }))
      .sessionIds;
  };
  const states = async (taskId: string, state: SessionState): Promise<number> =>
    (await sessionsOf(scheduler.client, taskId)).filter((session) => session.state === state).length;
  const waitingIn = async (taskId: string, state: SessionState) => {
    const one = (await sessionsOf(scheduler.client, taskId)).find((session) => session.state === state);
    return (await scheduler.client.getSession({ sessionId: one?.sessionId ?? '' })).waiting;
  };
  const prepared = (backend: string): number =>
    node.taken.filter(({ kind }) => kind.case === 'prepare' && kind.value.runtime?.backend === backend)
      .length;
  const endAll = async (taskId: string, count: number): Promise<void> => {
    await until('all have ended', async () => {
      for (const end of held.splice(0)) end();
      return (await states(taskId, SessionState.ENDED)) === count;
    });
  };

  it('are refused at submit where no node has so many, and not where one has', async () => {
    const refused = await submit('many', 'bubblewrap', 3).catch((error) => error);
    expect(refused).to.include({ reason: 'GPUS_NOT_OFFERED' });
    expect(refused.message).to.contain('no node that fits has 3 GPUs: node-1 has 2');
    expect(refused.fields?.map(({ field }: { field: string }) => field)).to.deep.equal(['runtime.gpus']);
  });

  it('run no more at once than there are GPUs, with as many prepared ahead, and say what they wait for', async () => {
    await submit('late', 'bubblewrap', 1, 6);
    await until('two run', () => held.length === 2);
    await until('two are ready', async () => (await states('late', SessionState.READY)) === 2);
    await sleep(300);
    expect(held.length).to.equal(2);
    expect(prepared('bubblewrap')).to.equal(4);
    const ready = await waitingIn('late', SessionState.READY);
    expect(ready).to.include({ reason: WaitReason.GPU });
    expect(ready?.message).to.equal('it asks for 1 GPU: 0 of 2 GPUs of node node-1 are free');
    const queued = await waitingIn('late', SessionState.QUEUED);
    expect(queued).to.include({ reason: WaitReason.GPU });
    expect(queued?.message).to.match(/^it asks for 1 GPU: 0 of 2 .*; 0 sessions of queue default before it$/);
    held.shift()?.();
    await until('another runs', () => held.length === 2);
    await endAll('late', 6);
  });

  it('are prepared no sooner than their GPUs are free where a sandbox has them from its creation on', async () => {
    await submit('early', 'docker', 1, 4);
    await until('two run', () => held.length === 2);
    await sleep(300);
    expect(prepared('docker')).to.equal(2);
    const queued = await waitingIn('early', SessionState.QUEUED);
    expect(queued).to.include({ reason: WaitReason.GPU });
    await endAll('early', 4);
    expect(prepared('docker')).to.equal(4);
  });

  it('keep nobody back who asks for none', async () => {
    await submit('both', 'bubblewrap', 2, 3);
    await until('one runs', () => held.length === 1);
    await submit('none', 'bubblewrap', 0, 2);
    await until('those run, too', () => held.length === 3);
    await endAll('both', 3);
    await endAll('none', 2);
  });
});
