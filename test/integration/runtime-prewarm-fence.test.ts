// A node that stood still for too long and goes on: it lets go before it is heard again.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { connect, type Msg, type NatsConnection, type Subscription } from 'nats';
import {
  type Heartbeat,
  HeartbeatReplySchema,
  HeartbeatSchema,
  WorkSchema,
} from '../../gen/ts/polar/event/v1/work_pb.js';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { NODE_FENCE_MS } from '../../services/common/limits.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  acquireFrom,
  eventually,
  managerIsReady,
  spawnManager,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';

describe('runtime-prewarm: a node that comes back late', () => {
  let nats: TestNats;
  let node: TestNode;
  let nc: NatsConnection;
  let scheduler: Subscription;
  let manager: ChildProcess;
  let answering = true;
  let taken = false;
  const heard: Heartbeat[] = [];
  before(async () => {
    nats = await startNats();
    node = await startNode({ natsUrl: nats.url, start: false });
    nc = await connect({ port: nats.port });
    scheduler = listen();
  });
  beforeEach(() => {
    heard.length = 0;
    manager = spawnManager(node);
  });
  afterEach(async () => {
    manager.kill('SIGCONT');
    manager.kill('SIGTERM');
    if (manager.exitCode === null) await once(manager, 'exit');
  });
  after(async () => {
    await nc.close();
    await node[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  const listen = (): Subscription =>
    nc.subscribe(subjects.anyHeartbeat, {
      callback: (_, message) => {
        heard.push(fromBinary(HeartbeatSchema, message.data));
        if (answering)
          message.respond(toBinary(HeartbeatReplySchema, create(HeartbeatReplySchema, { taken })));
      },
    });

  /** Hears what the node says, too. */
  async function during(callback: (message: Msg) => Promise<void>): Promise<Disposable> {
    const more = nc.subscribe(subjects.anyHeartbeat, { callback: (_, message) => void callback(message) });
    // Known to the server: what it is for may be said only once.
    await nc.flush();
    return { [Symbol.dispose]: () => more.unsubscribe() };
  }

  /** Resolves a moment behind the next heartbeat, while the node waits for the one behind it. */
  async function betweenHeartbeats(): Promise<void> {
    const count = heard.length;
    await eventually('the next heartbeat', () => heard.length > count);
    await sleep(100);
  }

  /** Work of a scheduler that has heard of this boot. */
  async function giveWork(sessionId: string): Promise<void> {
    const { nodeId = '', bootId = '' } = heard.at(-1) ?? {};
    const ref = { sessionId, attempt: 1, nodeId, bootId, taskId: 't' };
    const value = { runtime: { backend: 'process' }, timeoutMs: 30_000n, leaseMs: 60_000n };
    const work = create(WorkSchema, { ref, kind: { case: 'prepare', value } });
    await nc.jetstream().publish(subjects.work('prepare', nodeId), toBinary(WorkSchema, work));
    await eventually('its sandbox', () => heard.at(-1)?.attempts.length === 1);
  }

  /** The manager stands still for longer than it may be silent. Resolves to what it says first. */
  async function heardAfterStandingStill(): Promise<Heartbeat | undefined> {
    const before = heard.length;
    manager.kill('SIGSTOP');
    await sleep(NODE_FENCE_MS + 500);
    manager.kill('SIGCONT');
    await eventually('it is heard again', () => heard.length > before);
    return heard[before];
  }

  it('counts as started anew in the first thing that it says, and has no sandbox of a session', async () => {
    const runtimes = createPlainClient(RuntimeService, `http://127.0.0.1:${node.port}`);
    // Its first heartbeats may come before it listens.
    await managerIsReady(node);
    await betweenHeartbeats();
    await acquireFrom(runtimes, { spec: { backend: 'process' }, session: 's-late' });
    // It is nobody's attempt: the scheduler would revoke it.
    const other = await acquireFrom(runtimes, { spec: { backend: 'process' }, session: '' });
    await betweenHeartbeats();
    expect(heard.at(-1)?.attempts.map(({ sessionId }) => sessionId)).to.deep.equal(['s-late']);
    const last = heard.at(-1);
    const first = await heardAfterStandingStill();
    expect(first?.bootId).to.not.equal(last?.bootId);
    expect(first?.attempts).to.deep.equal([]);
    const left = (await runtimes.listRuntimes({})).runtimes.map(({ runtimeId }) => runtimeId);
    expect(left).to.deep.equal([other]);
    await runtimes.releaseRuntime({ runtimeId: other });
  });

  it('does so, too, where it has work of a scheduler none of whose answers came in time', async () => {
    answering = false;
    await betweenHeartbeats();
    await giveWork('s-unanswered');
    const last = heard.at(-1);
    const first = await heardAfterStandingStill();
    expect(first?.bootId).to.not.equal(last?.bootId);
    expect(first?.attempts).to.deep.equal([]);
  });

  it('says at last, when it is stopped, that it has nothing any more', async () => {
    answering = true;
    const runtimes = createPlainClient(RuntimeService, `http://127.0.0.1:${node.port}`);
    // Its first heartbeats may come before it listens.
    await managerIsReady(node);
    await betweenHeartbeats();
    await acquireFrom(runtimes, { spec: { backend: 'process' }, session: 's-stopped' });
    await betweenHeartbeats();
    const last = heard.at(-1);
    expect(last).to.include({ leaving: false });
    manager.kill('SIGTERM');
    await once(manager, 'exit');
    expect(heard.at(-1)).to.deep.include({ bootId: last?.bootId, leaving: true, attempts: [] });
    expect(manager.exitCode).to.equal(0);
  });

  it('says so before its port closes: until then who asks for a sandbox is told the same', async () => {
    answering = true;
    const runtimes = createPlainClient(RuntimeService, `http://127.0.0.1:${node.port}`);
    // Its first heartbeats may come before it listens.
    await managerIsReady(node);
    await betweenHeartbeats();
    const id = await acquireFrom(runtimes, { spec: { backend: 'process' }, session: 's-asking' });
    answering = false;
    const told = Promise.withResolvers<unknown>();
    using _ = await during(async (message) => {
      if (!fromBinary(HeartbeatSchema, message.data).leaving) return;
      const asked = runtimes.getFile({ runtimeId: id, path: '/polar/session/x' });
      told.resolve(await asked.catch((error) => asPolarError(error).reason));
      message.respond(toBinary(HeartbeatReplySchema, create(HeartbeatReplySchema)));
    });
    manager.kill('SIGTERM');
    expect(await told.promise).to.equal('SHUTTING_DOWN');
  });

  it('takes no work of another machine that is the node, and ends where that stays', async () => {
    answering = true;
    await betweenHeartbeats();
    const last = heard.at(-1);
    const runtimes = createPlainClient(RuntimeService, `http://127.0.0.1:${node.port}`);
    await runtimes.listRuntimes({});
    taken = true;
    await once(manager, 'exit');
    expect(manager.exitCode).to.equal(2);
    manager = spawnManager(node);
    await eventually('it is heard again', () => heard.at(-1)?.bootId !== last?.bootId);
    await betweenHeartbeats();
    expect(heard.at(-1)?.dataId).to.equal(last?.dataId).and.to.not.equal('');
    const refused = await runtimes.listRuntimes({}).catch((error) => error);
    expect(refused).to.have.property('reason', 'NODE_LOST');
    taken = false;
    await betweenHeartbeats();
    await eventually('it serves', () =>
      runtimes.listRuntimes({}).then(
        () => true,
        () => false,
      ),
    );
  });

  it('goes on where no scheduler was there to hear it for long, and answers come late', async () => {
    answering = false;
    scheduler.unsubscribe();
    await sleep(NODE_FENCE_MS + 3_000);
    expect(heard).to.deep.equal([]);
    scheduler = listen();
    await betweenHeartbeats();
    await giveWork('s-early');
    const { bootId } = heard.at(-1) ?? {};
    for (let i = 0; i < 3; i++) await betweenHeartbeats();
    expect(heard.at(-1)?.bootId).to.equal(bootId);
    expect(heard.at(-1)?.attempts).to.have.length(1);
  });
});
