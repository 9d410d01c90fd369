// Sessions that are open elsewhere with a lease: they outlive what their caller does, and not their caller.
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { WaitReason } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { openBus } from '../../services/common/nats/bus.ts';
import { polar, startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeNode } from '../support/fake-node.ts';
import { startNats } from '../support/nats.ts';
import { groupOf, startScheduler, type TestScheduler } from '../support/scheduler.ts';

/** A machine that stands still for as long ends what is renewed thrice in it. */
const LEASE_MS = 3_000;

const refusal = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'none',
    (error) => asPolarError(error).reason,
  );

describe('leases of sessions that run elsewhere', () => {
  const opened = new AsyncDisposableStack();
  let natsUrl: string;
  let scheduler: TestScheduler;
  before(async () => {
    const nats = opened.use(await startNats());
    natsUrl = nats.url;
    scheduler = opened.use(await startScheduler(nats.url, { stageGraceMs: 0 }));
    opened.use(await startFakeNode(nats.url));
    const nodes = async () => (await scheduler.client.listNodes({})).nodes;
    await eventually('its node is heard', async () => (await nodes())[0]?.healthy === true);
  });
  after(() => opened.disposeAsync());

  const submit = (taskId: string, numSamples: number) =>
    scheduler.client.submitTask({
      spec: {
        ...{ taskId, numSamples, instruction: 'Count.', harness: { name: 'external', modelName: 'm' } },
        builder: { strategy: 'prefix_merging' },
      },
    });
  const open = async (taskId: string, leaseMs = LEASE_MS) => {
    const { session } = await scheduler.client.openSession({ taskId, lease: durationFromMs(leaseMs) });
    return { sessionId: session?.sessionId ?? '', attempt: session?.attempt ?? 0 };
  };
  const lost = async (sessionId: string): Promise<Session> => {
    const found = async () => await scheduler.client.getSession({ sessionId });
    await eventually('it is lost', async () => (await found()).session?.state !== SessionState.RUNNING);
    const { session, waiting } = await found();
    expect([session?.failure?.reason, waiting?.reason]).to.deep.equal(['CALLER_LOST', WaitReason.OPEN]);
    return session as Session;
  };

  it('end what is not renewed, which is opened again, and nothing else', async () => {
    await submit('leases', 2);
    expect(await refusal(open('leases', 10))).to.equal('INVALID_REQUEST');
    const [held, left] = [await open('leases'), await open('leases')];
    for (let i = 0; i < 6; i++) {
      await sleep(LEASE_MS / 3);
      await scheduler.client.renewSession(held);
    }
    await lost(left.sessionId);
    for (const call of [scheduler.client.renewSession, scheduler.client.closeSession])
      expect(await refusal(call(left))).to.equal('SESSION_CLOSED');
    const again = await open('leases', 60_000);
    expect(again).to.deep.equal({ ...left, attempt: 2 });
    // A shell that had it before closes no attempt of another caller's.
    const env = { SESSION_ID: left.sessionId, SESSION_ATTEMPT: '1' };
    const late = ['capture', '--close', left.sessionId, '--reward', '1', '--rollout-url', scheduler.url];
    expect((await polar(late, { env })).stderr).to.match(/^polar: SESSION_CLOSED: attempt 1 of/);
    await scheduler.client.closeSession({ ...held, reward: 1 });
    await scheduler.client.closeSession({ ...again, reward: 0.5 });
    const bus = await openBus({ url: natsUrl, name: 'test' });
    opened.defer(() => bus.close());
    const { sessions } = await groupOf(bus, 'leases');
    expect(sessions.map(({ reward, attempt }) => [reward, attempt])).to.deep.equal([
      [1, 1],
      [0.5, 2],
    ]);
  });

  it('are renewed by polar capture while its command runs, and not by one that was killed', async () => {
    await submit('captured', 2);
    const at = [
      'capture',
      '--rollout-url',
      scheduler.url,
      '--task',
      'captured',
      '--lease',
      '1',
      '--reward',
      '1',
    ];
    const runs = startPolar([...at, '--', 'sleep', '2.5']);
    const killed = startPolar([...at, '--', 'sleep', '4']);
    await eventually('it is open', () => killed.stderr().includes('is open until'));
    killed.child.kill('SIGKILL');
    const [sessionId = ''] = /s-[\w-]+/.exec(killed.stderr()) ?? [];
    await lost(sessionId);
    const { code, stderr } = await runs.ended;
    expect(stderr).to.contain('is closed with reward 1');
    expect(code).to.equal(0);
    await killed.ended;
  });
});
