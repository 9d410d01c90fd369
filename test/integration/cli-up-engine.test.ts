// What `polar up` and `polar watch` say of engines that cannot be used, before a session's last attempt has.
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { expect } from 'chai';
import { Outcome, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { polar, type Running, startPolar } from '../support/cli.ts';
import { itLong } from '../support/long.ts';
import { unclaimedPorts } from '../support/nats.ts';

const SHOWN_MS = 60_000;

describe('engines that cannot be used', function () {
  this.timeout(120_000);
  let folder: string;
  const servers: Server[] = [];
  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'polar-test-up-engine-')));
  });
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close();
      server.closeAllConnections();
    }
    rmSync(folder, { recursive: true });
  });

  const listen = async (server: Server): Promise<string> => {
    servers.push(server.listen(0, '127.0.0.1'));
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  it('are told when the mesh is up, each by its own address', async () => {
    const refused = '{"error": {"message": "bad key"}}';
    const url = await listen(createServer((_, response) => response.writeHead(401).end(refused)));
    const config = join(folder, 'topology.yaml');
    writeFileSync(config, JSON.stringify(await topologyOf(folder, { engine: 'vllm', servers: [url] })));
    const mesh = startPolar(['up', '-c', config, '--json']);
    try {
      await shown(mesh, mesh.stderr, 'WARNING');
      expect(mesh.stderr()).to.contain(`WARNING: the engine at ${url} answers 401: bad key`);
      expect(JSON.parse(mesh.stdout()).addresses.engine).to.equal(url);
    } finally {
      mesh.child.kill('SIGTERM');
      await mesh.ended;
    }
  });

  itLong('do not make of a Ctrl-C while they are asked a failure', async () => {
    const url = await listen(createServer(() => {}));
    const task = join(folder, 'task.yaml');
    const agent = { harness: 'shell', custom_shell: { command: 'true' } };
    writeFileSync(task, JSON.stringify({ task_id: 'waits', instruction: 'x', agent }));
    const engine = ['--engine', 'vllm', '--engine-url', url];
    const mesh = startPolar(['up', '--data-dir', folder, '--task', task, ...engine]);
    await shown(mesh, mesh.stdout, 'look at it');
    mesh.child.kill('SIGINT');
    const { code, stderr } = await mesh.ended;
    expect(code, stderr).to.equal(0);
    expect(stderr).not.to.contain('NODE_LOST');
  });

  it('are named by the progress of a session that goes again, in one line', async () => {
    const failure = { reason: 'ENGINE_ERROR', message: 'the engine at x answers 401: bad key\nand more' };
    const session = { sessionId: 'task-0', attempt: 1, state: SessionState.QUEUED, failure };
    const ended = {
      ...session,
      attempt: 3,
      state: SessionState.ENDED,
      outcome: Outcome.INFRASTRUCTURE_ERROR,
    };
    const routes = (router: ConnectRouter): void =>
      void router
        .rpc(RolloutService.method.listSessions, () => ({ sessions: [ended] }))
        .rpc(RolloutService.method.watchTask, async function* () {
          yield { session, cursor: '1' };
          yield { session: ended, cursor: '2' };
        });
    const url = await listen(createServer(connectNodeAdapter({ routes })));
    const { code, stderr } = await polar(['watch', 'task', '--rollout-url', url]);
    expect(stderr).to.match(/QUEUED, ENGINE_ERROR: the engine at x answers 401: bad key\n/);
    expect(stderr).to.match(/INFRASTRUCTURE_ERROR \(attempt 3\), ENGINE_ERROR: the engine at x/);
    expect(code).to.equal(1);
  });
});

/** Until a command has said something, has ended, or the time is over. */
async function shown({ child }: Running, output: () => string, text: string): Promise<void> {
  const until = performance.now() + SHOWN_MS;
  while (!output().includes(text) && child.exitCode === null && performance.now() < until) await sleep(20);
}

async function topologyOf(folder: string, inference: object): Promise<object> {
  const [rollout, reconstructor, nats, port, prewarm, executor, evaluator] = await unclaimedPorts(7);
  const ports = { runtime_prewarm_port: prewarm, harness_executor_port: executor, evaluator_port: evaluator };
  const host = '127.0.0.1';
  return {
    data_dir: join(folder, 'state'),
    rollout: { host, port: rollout },
    reconstructor: { host, port: reconstructor },
    nats: { port: nats },
    gateway: { nodes: [{ id: 'one', host, port, ...ports, inference }] },
  };
}
