// Single sessions: GetTrajectory and ExportSession, against a scheduler that knows a few sessions.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Outcome, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { ExportKind } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { settledWithin } from '../../services/common/clock.ts';
import { PolarError } from '../../services/common/errors.ts';
import { sha256 } from '../../services/common/ids.ts';
import { INLINE_BYTES_MAX } from '../../services/common/limits.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';
import { EXPORTS_AT_ONCE_MAX, EXPORTS_WAITING_MAX } from '../../services/reconstructor/sessions/exports.ts';
import { eventually } from '../support/eventually.ts';
import { seeded } from '../support/laws.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor } from '../support/reconstructor.ts';
import { recordsOf } from '../support/records.ts';
import { madeUpSession } from '../support/sessions.ts';

const { RUNNING, ENDED, QUEUED } = SessionState;
const known: Record<
  string,
  {
    readonly taskId: string;
    readonly attempt: number;
    readonly state: SessionState;
    readonly stats?: { readonly calls: number };
  }
> = {
  ended: { taskId: 'whole', attempt: 2, state: ENDED },
  waiting: { taskId: 'partly', attempt: 1, state: ENDED },
  running: { taskId: 'partly', attempt: 1, state: RUNNING },
  queued: { taskId: 'partly', attempt: 0, state: QUEUED },
  taken: { taskId: 'old', attempt: 1, state: ENDED, stats: { calls: 3 } },
  unread: { taskId: 'unread', attempt: 1, state: ENDED, stats: { calls: 2 } },
  gone: { taskId: 'gone', attempt: 1, state: ENDED, stats: { calls: 2 } },
  shown: { taskId: 'partly', attempt: 1, state: RUNNING },
  planned: { taskId: 'planned', attempt: 1, state: RUNNING },
};

/** The part of the scheduler that is asked here. */
const startScheduler = (): Promise<RunningServer> =>
  startServer({
    host: '127.0.0.1',
    port: 0,
    services: [RolloutService.typeName],
    routes: (router) =>
      router.service(RolloutService, {
        getSession({ sessionId }) {
          const session = known[sessionId];
          if (session === undefined) throw new PolarError('NOT_FOUND', `no session ${sessionId}`);
          return { session: { ...session, sessionId, groupId: 'g0' } };
        },
        getTask: ({ taskId }) => {
          const strategy = taskId === 'planned' ? 'plan.mjs' : 'prefix_merging';
          return { task: { spec: { taskId, builder: { strategy } } } };
        },
      }),
  });

describe('reconstructor: sessions', () => {
  const recorded = madeUpSession(seeded(5), 30, 30);
  let nats: TestNats;
  let mesh: Mesh;
  let scheduler: RunningServer;
  let reconstructor: TestReconstructor;
  let plugins: string;
  before(async () => {
    plugins = mkdtempSync(join(tmpdir(), 'polar-test-plugins-'));
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    scheduler = await startScheduler();
    reconstructor = await startReconstructor(nats.url, {
      schedulerPort: scheduler.port,
      pluginsDir: plugins,
    });
    await mesh.record('ended', 1, recordsOf(recorded.slice(0, 1)));
    const records = recordsOf(recorded);
    await mesh.askForBuild('ended', 2, 'prefix_merging', (await mesh.record('ended', 2, records)) as never);
    await mesh.record('running', 1, records.slice(0, 12));
    await mesh.record('planned', 1, records.slice(0, 2));
    const { kind } = await mesh.fact('ended');
    if (kind.case !== 'built') throw new Error(kind.case);
    const { trajectory, stats } = kind.value;
    await mesh.announce({
      taskId: 'whole',
      sessions: [
        {
          sessionId: 'ended',
          sampleIndex: 0,
          attempt: 2,
          outcome: Outcome.HARNESS_ERROR,
          reward: 0,
          trajectory,
          stats,
        },
      ] as never,
    });
  });
  after(async () => {
    await reconstructor[Symbol.asyncDispose]();
    await scheduler.close();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
    rmSync(plugins, { recursive: true });
  });

  const lines = async (sessionId: string, kind: ExportKind, attempt = 0): Promise<string[]> => {
    const found: string[] = [];
    for await (const { line } of reconstructor.client.exportSession({ sessionId, kind, attempt }))
      found.push(line);
    return found;
  };
  const laws = (calls: readonly string[], traces: readonly string[]): string => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-export-'));
    try {
      writeFileSync(join(folder, 'calls'), calls.join('\n'));
      writeFileSync(join(folder, 'traces'), traces.join('\n'));
      const program = join(import.meta.dirname, '../vectors/laws.py');
      const files = [join(folder, 'calls'), join(folder, 'traces')];
      return execFileSync('python3', [program, ...files], { encoding: 'utf8', stdio: 'pipe' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
  const reasonOf = (promise: Promise<unknown>): Promise<PolarError> =>
    promise.then(
      () => new PolarError('INTERNAL', 'no error'),
      (error) => error,
    );

  it('gives the trajectory of an ended session under how it ended', async () => {
    const { trajectory } = await reconstructor.client.getTrajectory({ sessionId: 'ended' });
    expect(trajectory).to.include({
      sessionId: 'ended',
      taskId: 'whole',
      groupId: 'g0',
      attempt: 2,
      outcome: Outcome.HARNESS_ERROR,
      reward: 0,
      builder: 'prefix_merging',
    });
    expect(trajectory?.traces.length).to.be.greaterThan(0);
  });

  it('says why there is none yet, and when there is no such session', async () => {
    const { client } = reconstructor;
    const running = await reasonOf(client.getTrajectory({ sessionId: 'running' }));
    expect(running).to.include({ reason: 'NOT_ENDED' });
    expect(running.message).to.contain('running');
    const waiting = await reasonOf(client.getTrajectory({ sessionId: 'waiting' }));
    expect(waiting).to.include({ reason: 'NOT_ENDED' });
    expect(waiting.message).to.match(/has ended, but not all sessions of its group g0 of task partly/);
    expect(await reasonOf(client.getTrajectory({ sessionId: 'nobody' }))).to.include({ reason: 'NOT_FOUND' });
    expect(await reasonOf(lines('nobody', ExportKind.CALLS))).to.include({ reason: 'NOT_FOUND' });
    expect(await reasonOf(lines('ended', ExportKind.CALLS, 3))).to.include({ reason: 'NOT_FOUND' });
  });

  it('exports calls as they were recorded, and traces that hold all laws', async () => {
    const calls = await lines('ended', ExportKind.CALLS);
    const inOrder = [...recorded].sort((a, b) => a.end_seq - b.end_seq);
    const want = inOrder.map((call) => ({
      role: 'main',
      trainable: true,
      ...call,
      messages: call.messages.map((name) => `digest:${name}`),
      reply: call.reply === null ? null : `digest:${call.reply}`,
    }));
    const float32 = (value: unknown): unknown => (typeof value === 'number' ? Math.fround(value) : value);
    const parsed = calls.map((line) => JSON.parse(line));
    expect(parsed).to.deep.equal(
      want.map((call) => ({ ...call, logprobs: call.logprobs?.map(float32) ?? null })),
    );
    expect(laws(calls, await lines('ended', ExportKind.TRACES))).to.contain('30 calls');
  });

  it('exports what calls were and counted, without ids', async () => {
    const told = (await lines('ended', ExportKind.SUMMARIES)).map((line) => JSON.parse(line));
    const inOrder = [...recorded].sort((a, b) => a.end_seq - b.end_seq);
    expect(told.map((one) => [one.call_id, one.prompt_tokens, one.sampled_tokens])).to.deep.equal(
      inOrder.map((call) => [call.call_id, call.prompt_ids.length, call.sampled_ids.length]),
    );
    expect(told[0]).to.include({ role: 'main', model: inOrder[0]?.model, engine: 'sglang' });
    expect(told[0]).not.to.have.any.keys('prompt_ids', 'sampled_ids', 'logprobs', 'messages');
  });

  it('exports a running session and an earlier attempt from what is recorded', async () => {
    const calls = await lines('running', ExportKind.CALLS);
    expect(calls.length).to.equal(12);
    expect(laws(calls, await lines('running', ExportKind.TRACES))).to.contain('12 calls');
    const earlier = await lines('ended', ExportKind.CALLS, 1);
    expect(earlier.length).to.equal(1);
    expect(laws(earlier, await lines('ended', ExportKind.TRACES, 1))).to.contain('1 calls');
    expect(await lines('queued', ExportKind.CALLS)).to.deep.equal([]);
    expect(await lines('queued', ExportKind.TRACES)).to.deep.equal([]);
  });

  it('builds for a few exports at once, however many ask, and refuses those that are too many', async () => {
    const log = join(plugins, 'log');
    writeFileSync(
      join(plugins, 'plan.mjs'),
      `import { appendFileSync } from 'node:fs';
      import { setTimeout as sleep } from 'node:timers/promises';
      export const builder = { async build(calls) {
        appendFileSync(${JSON.stringify(log)}, '+');
        await sleep(100);
        appendFileSync(${JSON.stringify(log)}, '-');
        return { traces: calls.map((call) => ({ calls: [call.callId] })) };
      } };`,
    );
    const exports = Array.from({ length: 6 }, () => lines('planned', ExportKind.TRACES));
    for (const traces of await Promise.all(exports)) expect(traces).to.have.length(2);
    let running = 0;
    for (const mark of readFileSync(log, 'utf8')) {
      running += mark === '+' ? 1 : -1;
      expect(running).to.be.at.most(EXPORTS_AT_ONCE_MAX);
    }
  });

  it('writes a few exports at once of whatever kind, and counts none more that leaves before its turn', async () => {
    const [begun, end] = [join(plugins, 'begun'), join(plugins, 'end')];
    writeFileSync(
      join(plugins, 'plan.mjs'),
      `import { appendFileSync, existsSync } from 'node:fs';
      import { setTimeout as sleep } from 'node:timers/promises';
      export const builder = { async build(calls) {
        appendFileSync(${JSON.stringify(begun)}, '+');
        while (!existsSync(${JSON.stringify(end)})) await sleep(20);
        return { traces: calls.map((call) => ({ calls: [call.callId] })) };
      } };`,
    );
    const slow = Array.from({ length: EXPORTS_AT_ONCE_MAX }, () => lines('planned', ExportKind.TRACES));
    await eventually(
      'all that may build do',
      () => existsSync(begun) && readFileSync(begun).length === slow.length,
    );
    const leave = new AbortController();
    const many = Array.from({ length: EXPORTS_WAITING_MAX + 1 }, () =>
      reasonOf(
        Array.fromAsync(
          reconstructor.client.exportSession(
            { sessionId: 'planned', kind: ExportKind.CALLS },
            { signal: leave.signal },
          ),
        ),
      ),
    );
    expect(await Promise.race(many)).to.include({ reason: 'EXPORTS_LIMIT' });
    leave.abort();
    await Promise.all(many);
    const late = lines('planned', ExportKind.CALLS);
    // A refusal would come at once, while the others build.
    await settledWithin(late, 500);
    writeFileSync(end, '');
    for (const traces of await Promise.all([...slow, late])) expect(traces).to.have.length(2);
  });

  it('says so where retention has taken the records', async () => {
    for (const kind of [ExportKind.CALLS, ExportKind.TRACES]) {
      const error = await reasonOf(lines('taken', kind));
      expect(error, ExportKind[kind]).to.include({ reason: 'RECORDS_MISSING' });
      expect(error.message).to.match(/3 of the 3 .* session taken are gone: .*retention\.acked_days/);
    }
    // What exports many sessions counts them.
    expect(await lines('taken', ExportKind.MESSAGES)).to.deep.equal([]);
  });

  it('exports calls whose group cannot be read or is gone, without rewards', async () => {
    const records = recordsOf(recorded.slice(0, 2));
    const announce = (taskId: string, bytes: Uint8Array) =>
      publish(mesh.bus, mesh.blobs, subjects.trajectory(taskId, 'g0'), bytes);
    await announce('unread', Buffer.from('no group'));
    const large = new Uint8Array(INLINE_BYTES_MAX + 1);
    await announce('gone', large);
    await mesh.bus.jsm.streams.purge(STREAMS.blobs.name, { filter: subjects.blobParts(sha256(large)) });
    for (const [sessionId, reason] of [
      ['unread', 'RECORDS_INVALID'],
      ['gone', 'BLOB_MISSING'],
    ] as const) {
      await mesh.record(sessionId, 1, records);
      expect(await reasonOf(lines(sessionId, ExportKind.TRACES))).to.include({ reason });
      const calls = (await lines(sessionId, ExportKind.CALLS)).map((line) => JSON.parse(line));
      expect(calls.map(({ call_id: id, reward }) => [id, reward])).to.deep.equal(
        records.map(({ callId }) => [callId, undefined]),
      );
    }
  });

  it('exports the images of each trace by name, and their bytes once', async () => {
    const data = Buffer.from('not much of a picture').toString('base64');
    const address = 'https://example.test/a.jpg';
    const part = (url: string) => ({ type: 'image_url', image_url: { url } });
    const content = [{ type: 'text', text: 'x' }, part(`data:image/PNG;base64,${data}`), part(address)];
    const records = recordsOf(recorded.slice(0, 4));
    for (const record of records) {
      const [first = ''] = record.messageDigests;
      record.messageBodies = { [first]: JSON.stringify({ role: 'user', content }) };
    }
    await mesh.record('shown', 1, records);
    const digest = sha256(Buffer.from(data, 'base64'));
    const told = (await lines('shown', ExportKind.IMAGES)).map((line) => JSON.parse(line));
    expect(told).to.deep.equal([{ digest, media_type: 'image/png', size_bytes: 21, data }]);
    const traces = (await lines('shown', ExportKind.TRACES)).map((line) => JSON.parse(line));
    expect(traces).to.not.have.length(0);
    for (const { images } of traces) {
      const [sent, named] = images;
      expect(sent).to.deep.include({ digest, media_type: 'image/png', size_bytes: 21, url: '', part: 1 });
      expect(named).to.deep.include({ digest: '', media_type: '', size_bytes: 0, url: address, part: 2 });
      expect(sent.message)
        .to.match(/^digest:/)
        .and.to.equal(named.message);
    }
    expect(await lines('ended', ExportKind.IMAGES)).to.deep.equal([]);
  });

  it('leaves no consumer on the stream of records', async () => {
    await eventually('none is there', async () => {
      const info = await mesh.bus.jsm.streams.info('POLAR_COMPLETIONS');
      return info.state.consumer_count === 0;
    });
  });
});
