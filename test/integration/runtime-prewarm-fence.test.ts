// A node that stood still for too long and goes on: it lets go before it is heard again.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { connect, type NatsConnection } from 'nats';
import {
  type Heartbeat,
  HeartbeatReplySchema,
  HeartbeatSchema,
} from '../../gen/ts/polar/event/v1/work_pb.js';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { NODE_FENCE_MS } from '../../services/common/limits.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { acquireFrom, eventually, startNode, type TestNode } from '../support/runtime-prewarm.ts';

const MAIN = join(import.meta.dirname, '../../services/runtime-prewarm/main.ts');

describe('runtime-prewarm: a node that comes back late', () => {
  let nats: TestNats;
  let node: TestNode;
  let nc: NatsConnection;
  let manager: ChildProcess;
  const heard: Heartbeat[] = [];
  before(async () => {
    nats = await startNats();
    node = await startNode({ natsUrl: nats.url, start: false });
    nc = await connect({ port: nats.port });
    nc.subscribe(subjects.anyHeartbeat, {
      callback: (_, message) => {
        heard.push(fromBinary(HeartbeatSchema, message.data));
        message.respond(toBinary(HeartbeatReplySchema, create(HeartbeatReplySchema)));
      },
    });
    manager = spawn(process.execPath, [MAIN], { env: node.env, stdio: 'ignore' });
  });
  after(async () => {
    manager.kill('SIGCONT');
    manager.kill('SIGTERM');
    if (manager.exitCode === null) await once(manager, 'exit');
    await nc.close();
    await node[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  /** Resolves a moment behind the next heartbeat, while the node waits for the one behind it. */
  async function betweenHeartbeats(): Promise<void> {
    const count = heard.length;
    await eventually('the next heartbeat', () => heard.length > count);
    await sleep(100);
  }

  it('counts as started anew in the first thing that it says, and has no sandbox of a session', async () => {
    const runtimes = createPlainClient(RuntimeService, `http://127.0.0.1:${node.port}`);
    await betweenHeartbeats();
    await acquireFrom(runtimes, { spec: { backend: 'process' }, session: 's-late' });
    await betweenHeartbeats();
    expect(heard.at(-1)?.attempts.map(({ sessionId }) => sessionId)).to.deep.equal(['s-late']);
    const before = heard.length;
    manager.kill('SIGSTOP');
    await sleep(NODE_FENCE_MS + 500);
    manager.kill('SIGCONT');
    await eventually('it is heard again', () => heard.length > before);
    const [first, last] = [heard[before], heard[before - 1]];
    expect(first?.bootId).to.not.equal(last?.bootId);
    expect(first?.attempts).to.deep.equal([]);
    expect((await runtimes.listRuntimes({})).runtimes).to.deep.equal([]);
  });
});
