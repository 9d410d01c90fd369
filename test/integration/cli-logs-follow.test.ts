// `polar logs --follow` of a session that goes from node to node, with stand-ins that tell what a scheduler and two nodes would.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { type Session, SessionSchema, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { PolarError } from '../../services/common/errors.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';
import { polar, startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';

const { QUEUED, PREPARING, RUNNING, ENDED } = SessionState;
const ID = 's-abc-0';
const NODES = ['one', 'two'] as const;

/** What its attempts are, by the nodes that they began on; all but the last have ended. */
const session = (state: SessionState, ...nodes: string[]): Session =>
  create(SessionSchema, {
    ...{ sessionId: ID, taskId: 't', state, attempt: nodes.length, nodeId: nodes.at(-1) ?? '' },
    attempts: nodes.map((nodeId, i) => {
      const isOver = i < nodes.length - 1 || state === QUEUED || state === ENDED;
      return { attempt: i + 1, nodeId, ...(isOver && { endTime: timestampFromMs(1) }) };
    }),
  });

describe('polar logs --follow', () => {
  let folder: string;
  let servers: RunningServer[];
  /** What the scheduler tells, one after another; the last one stays. */
  let told: Session[];
  /** Output by node and attempt. */
  let output: Record<string, string>;
  let asked: string[];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-follow-'));
    const getSession = () => ({ session: told.length > 1 ? told.shift() : told[0] });
    const rollout = await startServer({
      ...{ host: '127.0.0.1', port: 0, services: [] },
      routes: (router) => void router.service(RolloutService, { getSession }),
    });
    const nodes = await Promise.all(NODES.map(startNode));
    servers = [rollout, ...nodes];
    const url = `http://127.0.0.1:${rollout.port}`;
    writeFileSync(
      join(folder, 'topology.yaml'),
      JSON.stringify({
        rollout: { port: rollout.port, public_url: url },
        gateway: {
          nodes: nodes.map(({ port }, i) => ({
            ...{ id: NODES[i], public_url: `http://127.0.0.1:${port}`, port: 9_000 + i },
            ...{
              runtime_prewarm_port: 9_100 + i,
              harness_executor_port: 9_200 + i,
              evaluator_port: 9_300 + i,
            },
          })),
        },
      }),
    );
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.close()));
    rmSync(folder, { recursive: true });
  });
  beforeEach(() => {
    asked = [];
    output = {};
  });

  const startNode = (nodeId: string, port = 0): Promise<RunningServer> =>
    startServer({
      ...{ host: '127.0.0.1', port, services: [] },
      routes: (router) =>
        void router.service(HarnessService, {
          getSessionLogs({ attempt }) {
            asked.push(`${nodeId} ${attempt}`);
            const text = output[`${nodeId} ${attempt}`];
            if (text === undefined) throw new PolarError('NOT_FOUND', `node ${nodeId} has no output`);
            const running = text.endsWith('…\n');
            return { stdout: Buffer.from(text), stdoutSize: BigInt(text.length), attempt, running };
          },
        }),
    });
  const command = (...more: string[]): string[] => [
    ...['logs', ID, '--follow', '-c', join(folder, 'topology.yaml'), ...more],
  ];
  const follow = (...more: string[]) => polar(command(...more));
  const nodeOne = () => servers[1] as RunningServer;

  it('waits for a node, and for the run there', async () => {
    told = [session(QUEUED), session(QUEUED), session(PREPARING, 'two'), session(RUNNING, 'two')];
    output = { 'two 1': 'ran\n' };
    expect(await follow()).to.deep.equal({ code: 0, stdout: 'ran\n', stderr: '' });
  });

  it('goes to the node of the next attempt, where one was lost before it ran', async () => {
    told = [session(PREPARING, 'one'), session(QUEUED, 'one'), session(RUNNING, 'one', 'two')];
    output = { 'two 2': 'ran\n' };
    expect(await follow()).to.deep.equal({ code: 0, stdout: 'ran\n', stderr: '' });
    expect(asked).to.deep.equal(['one 1', 'two 2']);
  });

  it('goes on when services are started again, but waits for none that never answered', async () => {
    told = [session(RUNNING, 'one')];
    output = { 'one 1': 'begun …\n' };
    const following = startPolar(command());
    await eventually('it has begun', () => following.stdout().includes('begun'));
    const { port } = nodeOne();
    await nodeOne().close();
    let refused = 0;
    const away = createServer((socket) => {
      refused++;
      socket.destroy();
    }).listen(port, '127.0.0.1');
    await eventually('nobody answers', () => refused > 0 || following.child.exitCode !== null);
    const never = await follow();
    away.close();
    await once(away, 'close');
    servers[1] = await startNode('one', port);
    output = { 'one 1': 'and ended\n' };
    const { code, stdout, stderr } = await following.ended;
    expect(`${never.code},${never.stderr}`).to.match(/^3,polar: MESH_UNREACHABLE/);
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout).to.match(/^begun …\n.*and ended\n$/s);
  });

  it('ends with a session, or the attempt that is asked for, that has left nothing', async () => {
    told = [session(RUNNING, 'one'), session(ENDED, 'one')];
    const ended = await follow();
    expect([ended.code, ended.stderr.trim()]).to.deep.equal([1, 'polar: NOT_FOUND: node one has no output']);
    told = [session(RUNNING, 'one', 'two')];
    expect((await follow('--attempt', '1')).stderr).to.contain('node one has no output');
    told = [session(QUEUED), session(ENDED)];
    expect((await follow()).stderr.trim()).to.equal(`polar: NOT_FOUND: no output of ${ID}: it has not run`);
  });

  it('says how to name a node that the topology has not, as in another folder than the mesh', async () => {
    told = [session(ENDED, 'three')];
    const { code, stderr } = await follow();
    expect(stderr).to.contain(`no output of ${ID}: it ran on node three, which the topology here has not`);
    expect(stderr).to.match(/name the topology of its mesh with -c.*, or the node with --node-url/);
    expect(code).to.equal(1);
  });
});
