// `polar audit` as an operator runs it: records and trajectories in a real store, faults planted there, and an engine
// that scores ids again.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import type { BlobRef } from '../../gen/ts/polar/common/v1/blob_pb.js';
import { Outcome, SessionState, type SessionStats } from '../../gen/ts/polar/common/v1/session_pb.js';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { GroupReadySchema, SessionResultSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { type Trace, TrajectorySchema } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { packFloats, packIds, unpackFloats, unpackIds } from '../../services/common/columns.ts';
import { PolarError } from '../../services/common/errors.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';
import { createStore } from '../../services/reconstructor/retention/store.ts';
import { type Ended, polar } from '../support/cli.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor } from '../support/reconstructor.ts';
import { recordsOf } from '../support/records.ts';

const HOUR_MS = 3_600_000;

/** A trace that begins with it is too long for the engine of this test. */
const REFUSED = 7_777;

/** What the engine of this test gives an id at a place: an exact float32. */
const logprobOf = (id: number, place: number): number => -((id * 31 + place) % 100) / 64;

/** A session of three turns; every prompt goes on from the last reply. */
function threeTurns(name: string): Completion[] {
  let ids: number[] = [name === 'refused' ? REFUSED : 1, 2, 3];
  const calls = [0, 1, 2].map((turn) => {
    const prompt_ids = ids;
    const sampled_ids = [10 + turn, 20 + turn, 30 + turn];
    ids = [...prompt_ids, ...sampled_ids, 40 + turn];
    return {
      ...{ call_id: `${name}-c${turn}`, start_seq: 2 * turn, end_seq: 2 * turn + 1, prompt_ids, sampled_ids },
      logprobs: sampled_ids.map((id, i) => logprobOf(id, prompt_ids.length + i)),
      ...{
        finish_reason: 'stop',
        model: 'tiny',
        policy_version: 4,
        messages: [`m${turn}`],
        reply: `r${turn}`,
      },
    };
  });
  return recordsOf(calls).map((record) => {
    Object.assign(record, { engine: 'vllm', logprobMode: 'raw' });
    return record;
  });
}

/** Speaks what three kinds of engines answer when they score ids. */
function startScoring(): Promise<Server> {
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await textOf(request));
    const of = (ids: readonly number[]): number[] => ids.map(logprobOf);
    const answers: Record<string, () => object> = {
      '/v1/completions': () => ({
        choices: [
          {
            prompt_logprobs: of(body.prompt).map((logprob, i) =>
              i === 0 ? null : { [body.prompt[i]]: { logprob } },
            ),
          },
        ],
      }),
      '/generate': () => ({
        meta_info: {
          input_token_logprobs: of(body.input_ids).map((one, i) => [one, body.input_ids[i], null]),
        },
      }),
      '/completion': () => {
        const [[id]] = body.logit_bias;
        return { completion_probabilities: [{ id, logprob: logprobOf(id, body.prompt.length) }] };
      },
    };
    const answer = answers[request.url ?? ''];
    if ((body.prompt ?? body.input_ids)[0] === REFUSED) {
      response.writeHead(400).end('{"message":"longer than the context"}');
      return;
    }
    response.writeHead(answer === undefined ? 404 : 200).end(JSON.stringify(answer?.() ?? {}));
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

interface Known {
  readonly taskId: string;
  readonly groupId: string;
  readonly state: SessionState;
  readonly stats?: SessionStats;
}

describe('polar audit', function () {
  this.timeout(90_000);
  const known = new Map<string, Known>();
  const stack = new AsyncDisposableStack();
  let nats: TestNats;
  let mesh: Mesh;
  let scheduler: RunningServer;
  let reconstructor: TestReconstructor;
  let scoringUrl: string;

  const sessionOf = (sessionId: string) => {
    const session = known.get(sessionId);
    if (session === undefined) throw new PolarError('NOT_FOUND', `no session ${sessionId}`);
    const ended = session.state === SessionState.ENDED;
    const more = ended && { outcome: Outcome.COMPLETED, endTime: timestampFromMs(Date.now() - HOUR_MS) };
    return { sessionId, attempt: 1, harness: 'pi', ...session, ...more };
  };
  /** The part of the scheduler that is asked here. */
  const startScheduler = (): Promise<RunningServer> =>
    startServer({
      host: '127.0.0.1',
      port: 0,
      services: [RolloutService.typeName],
      routes: (router) =>
        router.service(RolloutService, {
          getSession: ({ sessionId }) => ({ session: sessionOf(sessionId) }),
          getTask: ({ taskId }) => ({ task: { spec: { taskId, builder: { strategy: 'prefix_merging' } } } }),
          listSessions({ taskId }) {
            const ids = [...known.keys()].filter((id) => known.get(id)?.taskId === taskId);
            if (ids.length === 0) throw new PolarError('NOT_FOUND', `no task ${taskId}`);
            return { sessions: ids.map(sessionOf) };
          },
          // No page but the last one holds anything, as where the tasks in memory ended long ago.
          listTasks({ pageToken, sinceTime }) {
            expect(sinceTime).to.not.equal(undefined);
            if (pageToken === '') return { tasks: [], nextPageToken: 'archive' };
            return { tasks: [...known.values()].map(({ taskId }) => ({ taskId })) };
          },
        }),
    });

  const announce = (sessionId: string, trajectory: BlobRef, stats?: SessionStats) => {
    const { taskId = '', groupId = '' } = known.get(sessionId) ?? {};
    const result = { sessionId, attempt: 1, outcome: Outcome.COMPLETED, reward: 1, trajectory };
    const sessions = [create(SessionResultSchema, { ...result, ...(stats && { stats }) })];
    const group = create(GroupReadySchema, { taskId, groupId, sessions });
    const bytes = toBinary(GroupReadySchema, group);
    return publish(mesh.bus, mesh.blobs, subjects.trajectory(taskId, groupId), bytes);
  };
  /** Recorded, built by the reconstructor, announced: as the mesh does it. */
  const finish = async (
    sessionId: string,
    taskId = `task-${sessionId}`,
    groupId = 'g0',
  ): Promise<BlobRef> => {
    known.set(sessionId, { taskId, groupId, state: SessionState.ENDED });
    const range = await mesh.record(sessionId, 1, threeTurns(sessionId));
    await mesh.askForBuild(sessionId, 1, 'prefix_merging', range as never);
    const { kind } = await mesh.fact(sessionId);
    if (kind.case !== 'built' || kind.value.trajectory === undefined)
      throw new Error(`no build: ${kind.case}`);
    const { trajectory, stats } = kind.value;
    known.set(sessionId, { taskId, groupId, state: SessionState.ENDED, ...(stats && { stats }) });
    await announce(sessionId, trajectory, stats);
    return trajectory;
  };
  /** As who can write to the store could: another trajectory in its place. */
  const replace = async (sessionId: string, change: (traces: [Trace]) => void): Promise<void> => {
    const trajectory = fromBinary(TrajectorySchema, await mesh.blobs.get(await finish(sessionId)));
    change(trajectory.traces as [Trace]);
    const changed = await mesh.blobs.put(toBinary(TrajectorySchema, trajectory));
    await announce(sessionId, changed, known.get(sessionId)?.stats);
  };
  const audit = (...args: string[]): Promise<Ended> => {
    const at = ['--rollout-url', `http://127.0.0.1:${scheduler.port}`, '--trajectory-url', reconstructor.url];
    return polar(['audit', ...args, ...(args.includes('--harnesses') ? at.slice(0, 2) : at)]);
  };

  before(async () => {
    nats = stack.use(await startNats());
    mesh = await Mesh.open(nats.url);
    stack.defer(() => mesh.close());
    scheduler = await startScheduler();
    stack.defer(() => scheduler.close());
    reconstructor = stack.use(await startReconstructor(nats.url, { schedulerPort: scheduler.port }));
    const scoring = await startScoring();
    stack.defer(() => void scoring.close());
    scoringUrl = `http://127.0.0.1:${(scoring.address() as AddressInfo).port}`;
    await finish('good');
    known.set('running', { taskId: 'task-running', groupId: 'g0', state: SessionState.RUNNING });
    await mesh.record('running', 1, threeTurns('running').slice(0, 2));
    await replace('planted', ([trace]) => {
      trace.responseIds = packIds(unpackIds(trace.responseIds).with(5, 99));
    });
    await replace('swapped', ([trace]) => {
      trace.logprobs = packFloats(unpackFloats(trace.logprobs).with(4, -0.5));
    });
  });
  after(() => stack.disposeAsync());

  it('accounts for every sampled token of a clean session', async () => {
    const { code, stdout, stderr } = await audit('good');
    expect(stderr).to.equal('');
    expect(stdout).to.match(/good +pi +completed +3 +9 +9 +0 +9 +0/);
    expect(stdout).to.contain('every sampled token is accounted for');
    expect(code).to.equal(0);
  });

  it('is machine-readable, one line a session', async () => {
    const { stdout } = await audit('task-good', '--json');
    expect(JSON.parse(stdout)).to.deep.equal({
      ...{ session_id: 'good', task_id: 'task-good', harness: 'pi', attempt: 1, status: 'completed' },
      ...{ builder: 'prefix_merging', calls: 3, sampled: 9, trained: 9, masked: {}, engine_usage: 9 },
      ...{ calls_without_usage: 0, findings: [], findings_more: 0 },
    });
  });

  it('names call and index of one id that was changed in the store', async () => {
    const { code, stdout } = await audit('planted');
    expect(stdout).to.contain(
      'planted: sampled_ids: call planted-c1, trace 0, index 1: the store has id 99, the record 21',
    );
    expect(stdout).to.contain('1 findings');
    expect(code).to.equal(1);
  });

  it('names a logprob that was changed in the store', async () => {
    const { code, stdout } = await audit('swapped', '--json');
    expect(JSON.parse(stdout).findings).to.have.length(1);
    expect(JSON.parse(stdout).findings[0]).to.include({ kind: 'logprob', call_id: 'swapped-c1', index: 0 });
    expect(code).to.equal(1);
  });

  it('tells that a stored trajectory is not the one of its digest', async () => {
    const { sha256 } = await finish('torn');
    const chunk = subjects.blobChunk(sha256, 0);
    const bytes = new Uint8Array(
      (await mesh.bus.jsm.streams.getMessage('POLAR_BLOBS', { last_by_subj: chunk })).data,
    );
    bytes.set([7], bytes.length - 1);
    await mesh.bus.js.publish(chunk, bytes);
    const { code, stdout } = await audit('torn');
    expect(stdout).to.contain('torn: trajectory: it cannot be read: BLOB_MISSING').and.contain('digest');
    expect(code).to.equal(1);
  });

  it('counts the records of a session that runs', async () => {
    const { code, stdout } = await audit('running');
    expect(stdout).to.match(/running +pi +running +2 +6 +0 +0 +6 +0/);
    expect(stdout).to.contain('their records alone are counted');
    expect(code).to.equal(0);
  });

  it('does not call clean what retention has taken', async () => {
    await finish('swept');
    const store = createStore(mesh.bus);
    const { state } = await mesh.bus.jsm.streams.info(STREAMS.trajectories.name);
    await store.removeRecords('swept', 1, AbortSignal.timeout(10_000));
    await store.removeGroup(state.last_seq, subjects.trajectory('swept', 'g0'), AbortSignal.timeout(10_000));
    const { code, stdout } = await audit('swept');
    expect(stdout).to.contain('swept: records: 3 of its 3 recorded calls are gone').and.contain('1 findings');
    expect(stdout).to.not.contain('accounted for');
    expect(code).to.equal(1);
  });

  for (const kind of ['vllm', 'sglang', 'llamacpp'] as const) {
    it(`scores traces again (${kind})`, async () => {
      const flags = [
        '--rescore',
        '--engine',
        scoringUrl,
        '--engine-kind',
        kind,
        '--json',
        '--tolerance',
        '0',
      ];
      const good = await audit('good', ...flags);
      const [, told] = good.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(told.not_comparable).to.equal(0);
      expect(told.rescored).to.have.length(1);
      expect(told.rescored[0]).to.include({ engine: 'vllm', policy_version: 4, ids: 9, mean: 0, max: 0 });
      expect(good.code).to.equal(0);
    });
  }

  it('finds a difference above the tolerance, and where it is', async () => {
    const flags = [
      '--rescore',
      '--engine',
      scoringUrl,
      '--engine-kind',
      'vllm',
      '--json',
      '--tolerance',
      '0.1',
    ];
    const swapped = await audit('swapped', ...flags);
    const [, found] = swapped.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(found.rescored[0].worst).to.include({ sessionId: 'swapped', callId: 'swapped-c1', index: 0 });
    expect(swapped.code).to.equal(1);
  });

  it('shows the differences as a table, and says which engine does not answer', async () => {
    const engine = ['--engine', scoringUrl, '--engine-kind', 'vllm'];
    const { stdout, code } = await audit('good', '--rescore', ...engine);
    expect(stdout).to.match(/engine +logprobs +policy +ids +mean +p50 +p90 +p99 +max/);
    expect(stdout).to.match(/vllm +raw +4 +9 +0 +0 +0 +0 +0 +good: call good-c0, index 0/);
    expect(code).to.equal(0);
    const away = await audit('good', '--rescore', '--engine', 'http://127.0.0.1:9', '--engine-kind', 'vllm');
    expect(away.stdout).to.contain('every sampled token is accounted for');
    expect(away.stdout).to.contain('ENGINE_UNAVAILABLE').and.contain('http://127.0.0.1:9');
    expect(away.code).to.equal(1);
  });

  it('names a trace that the engine refuses, and scores the others', async () => {
    await finish('refused', 'task-long');
    await finish('fits', 'task-long', 'g1');
    const engine = ['--engine', scoringUrl, '--engine-kind', 'vllm'];
    const { stdout, code } = await audit('task-long', '--rescore', ...engine);
    expect(stdout).to.match(/refused +pi +completed +3 +9 +9 +0 +9 +0/);
    expect(stdout).to.match(/vllm +raw +4 +9 +0/);
    expect(stdout).to.contain('1 traces with 9 trained ids are not scored');
    expect(stdout).to.match(/refused: trace 0: ENGINE_ERROR: .* answers 400: .*longer than the context/);
    expect(code).to.equal(1);
    const { stdout: lines } = await audit('refused', '--rescore', ...engine, '--json');
    const told = JSON.parse(lines.trim().split('\n').at(-1) ?? '');
    expect(told.not_scored).to.have.length(1);
    expect(told.not_scored[0]).to.include({ session_id: 'refused', trace: 0, ids: 9 });
  });

  it('tells which part of the sampled tokens each harness delivers', async () => {
    const { stdout, code } = await audit('--harnesses', '--since', '2h', '--json');
    expect(code).to.equal(0);
    expect(JSON.parse(stdout)).to.include({ harness: 'pi', delivered: 1, usage_mismatches: 0 });
    const nothing = await audit('--harnesses', '--since', '30m', '--json');
    expect(nothing.stdout).to.equal('');
  });

  it('refuses what makes no sense', async () => {
    expect((await audit('good', '--harnesses')).code).to.equal(2);
    expect((await audit('good', '--rescore', '--engine', scoringUrl)).stderr).to.contain('--engine-kind');
    expect((await audit('nobody')).stderr).to.contain('NOT_FOUND: no task or session nobody');
  });
});
