// The scheduler through kills: of itself, of nats-server, by a second scheduler. What was answered is kept, every session
// ends once, nothing is announced twice.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import {
  ChangeSchema,
  SnapshotManifestSchema,
  type TaskRecord,
} from '../../gen/ts/polar/event/v1/state_pb.js';
import type { GroupReady } from '../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { COMMIT_BYTES_MAX } from '../../services/common/limits.ts';
import { createLogger } from '../../services/common/logger.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { completeTaskSpec } from '../../services/common/specs/task-spec.ts';
import { dispatched, ended, queuedSession, running } from '../../services/scheduler/domain/session.ts';
import { specDigest, taskRecord } from '../../services/scheduler/domain/task.ts';
import { Chain, lastSeqOf } from '../../services/scheduler/journal/chain.ts';
import { readManifest, readSnapshot, writeSnapshot } from '../../services/scheduler/journal/snapshots.ts';
import { openStateLog } from '../../services/scheduler/journal/state-log.ts';
import { startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  groupOf,
  type RolloutClient,
  sessionsOf,
  spawnScheduler,
  startScheduler,
  taskSpec,
} from '../support/scheduler.ts';

const log = createLogger('test', 'silent');

/** Submits through a scheduler that comes and goes, as a client does: the same request again until it is answered. */
async function submitAnyhow(client: RolloutClient, taskId: string, numSamples: number): Promise<string[]> {
  for (;;) {
    try {
      const call = client.submitTask(
        { spec: taskSpec(taskId, { numSamples, maxAttempts: 10 }) },
        { timeoutMs: 2_000 },
      );
      return (await call).sessionIds;
    } catch {
      await sleep(50);
    }
  }
}

function expectWhole(group: GroupReady, sessionIds: readonly string[]): void {
  expect(group.sessions.map((one) => one.sessionId)).to.deep.equal(sessionIds);
  for (const result of group.sessions) {
    expect(result.outcome, result.failure?.message).to.equal(Outcome.COMPLETED);
    expect(result.reward).to.equal(0.5);
    expect(result.trajectory).to.not.equal(undefined);
  }
}

describe('scheduler recovery', () => {
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

  it('goes on where it was killed, time and again', async () => {
    await using node = await startFakeNode(nats.url, {
      runSlots: 8,
      prepareSlots: 8,
      readySlots: 8,
      evaluateSlots: 8,
    });
    for (const kind of ['prepare', 'run', 'build', 'evaluate'] as const) {
      const answer = node.on[kind];
      node.on[kind] = async (work) => {
        await sleep(30);
        return await answer(work);
      };
    }
    await using scheduler = await spawnScheduler(nats.url);
    const submitted: Promise<string[]>[] = [];
    for (let round = 0; round < 4; round++) {
      submitted.push(submitAnyhow(scheduler.client, `round-${round}`, 15));
      await sleep(60 + 70 * round);
      await scheduler.kill();
      await scheduler.start();
    }
    for (const [round, ids] of submitted.entries()) {
      expectWhole(await groupOf(bus, `round-${round}`), await ids);
    }
    // A killed scheduler costs no attempt: the work goes on without it.
    const sessions = await sessionsOf(scheduler.client, 'round-0');
    expect(sessions.every(({ attempt }) => attempt === 1)).to.equal(true);
    const { state } = await bus.jsm.streams.info(STREAMS.trajectories.name);
    expect(state.messages).to.equal(4);
  });

  it('goes on through kills of nats-server', async () => {
    await using node = await startFakeNode(nats.url, {
      runSlots: 8,
      prepareSlots: 8,
      readySlots: 8,
      evaluateSlots: 8,
    });
    const { run } = node.on;
    node.on.run = async (work) => {
      await sleep(40);
      return await run(work);
    };
    await using scheduler = await startScheduler(nats.url);
    const submitted: Promise<string[]>[] = [];
    for (let round = 0; round < 3; round++) {
      submitted.push(submitAnyhow(scheduler.client, `storm-${round}`, 15));
      await sleep(40 + 60 * round);
      await nats.kill();
      await sleep(100 * round);
      await nats.start();
    }
    for (const [round, ids] of submitted.entries()) {
      expectWhole(await groupOf(bus, `storm-${round}`), await ids);
    }
    const { state } = await bus.jsm.streams.info(STREAMS.trajectories.name);
    expect(state.messages).to.equal(3);
  });

  it('comes back from a snapshot and the log behind it with the same state', async () => {
    const node = await startFakeNode(nats.url);
    const first = await startScheduler(nats.url, { commitsPerSnapshot: 10 });
    for (let i = 0; i < 6; i++) await first.client.submitTask({ spec: taskSpec(`t${i}`, { numSamples: 4 }) });
    for (let i = 0; i < 6; i++) await groupOf(bus, `t${i}`);
    const image = { runtime: { backend: 'bubblewrap', image: 'none' } };
    await node[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();

    const second = await startScheduler(nats.url, { commitsPerSnapshot: 10 });
    const waiting = await second.client.submitTask({ spec: taskSpec('waits', { numSamples: 2, ...image }) });
    const shown = async (client: RolloutClient) => ({
      tasks: (await client.listTasks({})).tasks,
      sessions: await Promise.all([...Array(6).keys()].map((i) => sessionsOf(client, `t${i}`))),
    });
    const before = await shown(second.client);
    await second[Symbol.asyncDispose]();
    const { state } = await bus.jsm.streams.info(STREAMS.state.name);
    expect(state.first_seq).to.be.greaterThan(1);
    expect(state.messages).to.be.lessThan(40);

    await using third = await startScheduler(nats.url);
    expect(await shown(third.client)).to.deep.equal(before);
    const again = await third.client.submitTask({ spec: taskSpec('waits', { numSamples: 2, ...image }) });
    expect(again.sessionIds).to.deep.equal(waiting.sessionIds);
    const blobs = await bus.jsm.streams.info(STREAMS.blobs.name, {
      subjects_filter: 'polar.v1.blob.*.0',
    });
    // 24 trajectories and one snapshot: older snapshots are purged.
    expect(Object.keys(blobs.state.subjects ?? {})).to.have.length(25);
  });

  it('commits changes of thousands of sessions in parts that fit, and reads them back', async () => {
    const numSamples = 4_096;
    const first = await startScheduler(nats.url);
    await first.client.submitTask({ spec: taskSpec('large', { numSamples }) });
    expect(await lastSeqOf(bus)).to.equal(2);
    const cancelled = await first.client.cancelTask({ taskId: 'large' });
    expect(cancelled.task?.sessionsByOutcome).to.deep.equal({ cancelled: numSamples });
    expect((await groupOf(bus, 'large')).sessions).to.have.length(numSamples);
    await first[Symbol.asyncDispose]();
    const last = await lastSeqOf(bus);
    const sizes = await Promise.all(
      Array.from({ length: last }, async (_, i) => {
        return (await bus.direct.getMessage(STREAMS.state.name, { seq: i + 1 })).data.byteLength;
      }),
    );
    expect(Math.max(...sizes)).to.be.within(1, COMMIT_BYTES_MAX + 64);
    await using second = await startScheduler(nats.url);
    await second.leading;
    expect((await second.client.getTask({ taskId: 'large' })).task).to.deep.equal(cancelled.task);
  });

  it('sends work again that was committed and not sent, of a record that an earlier version wrote', async () => {
    const blobs = createBlobStore(bus);
    const stateLog = await openStateLog({
      bus,
      blobs,
      log,
      holder: 'test',
      signal: new AbortController().signal,
      onCommitted: () => {},
      onFailed: () => {},
    });
    const spec = completeTaskSpec(taskSpec('unsent', { numSamples: 2 }));
    const value = await blobs.put(toBinary(TaskSpecSchema, spec));
    const init = { specSha256: specDigest(spec), requestId: 'unsent', sessionPrefix: 's-unsent' };
    const record: TaskRecord = {
      ...taskRecord({ spec, filesRef: value, ...init, createMs: Date.now() }),
      spec: { case: 'specRef', value },
    };
    const place = { nodeId: 'node-1', bootId: 'boot-1' };
    const preparing = dispatched(queuedSession(record, spec, 0), place, Date.now());
    const runs = {
      ...running(dispatched(queuedSession(record, spec, 1), place, Date.now()), Date.now()),
      runtimeId: 'rt',
    };
    await stateLog.journal.propose(
      create(ChangeSchema, { kind: { case: 'task', value: record } }),
      create(ChangeSchema, { kind: { case: 'session', value: preparing } }),
      create(ChangeSchema, { kind: { case: 'session', value: runs } }),
    );
    await using scheduler = await startScheduler(nats.url);
    await using node = await startFakeNode(nats.url, { bootId: 'boot-1' });
    expectWhole(await groupOf(bus, 'unsent'), ['s-unsent-0', 's-unsent-1']);
    const sessions = await sessionsOf(scheduler.client, 'unsent');
    expect(sessions.map(({ attempt }) => attempt)).to.deep.equal([1, 1]);
    const works = node.taken.map(({ kind, ref }) => `${ref?.sampleIndex} ${kind.case}`);
    expect(new Set(works).size).to.equal(works.length);
    const said = node.taken.flatMap(({ kind }) => (kind.case === 'run' ? [kind.value.instruction] : []));
    expect(new Set(said)).to.deep.equal(new Set([spec.instruction]));
  });

  it('announces a group that had ended and was not announced, once', async () => {
    const stateLog = await openStateLog({
      bus,
      blobs: createBlobStore(bus),
      log,
      holder: 'test',
      signal: new AbortController().signal,
      onCommitted: () => {},
      onFailed: () => {},
    });
    const spec = completeTaskSpec(taskSpec('silent'));
    const record = taskRecord({
      spec,
      filesRef: undefined,
      specSha256: specDigest(spec),
      requestId: 'silent',
      sessionPrefix: 's-silent',
      createMs: Date.now(),
    });
    const over = ended(queuedSession(record, spec, 0), Outcome.CANCELLED, Date.now());
    await stateLog.journal.propose(
      create(ChangeSchema, { kind: { case: 'task', value: record } }),
      create(ChangeSchema, { kind: { case: 'session', value: over } }),
    );
    const first = await startScheduler(nats.url);
    expect((await groupOf(bus, 'silent')).sessions[0]?.outcome).to.equal(Outcome.CANCELLED);
    await first[Symbol.asyncDispose]();
    await using _second = await startScheduler(nats.url);
    await sleep(200);
    expect((await bus.jsm.streams.info(STREAMS.trajectories.name)).state.messages).to.equal(1);
  });

  it('gives a stage up that is past its budget and grace', async () => {
    await using node = await startFakeNode(nats.url);
    const { run } = node.on;
    node.on.run = (work) => (work.ref?.attempt === 1 ? undefined : run(work));
    await using scheduler = await startScheduler(nats.url, { stageGraceMs: 300 });
    await scheduler.client.submitTask({
      spec: taskSpec('silent-run', { budgets: { run: { nanos: 200_000_000 } } }),
    });
    const [result] = (await groupOf(bus, 'silent-run')).sessions;
    expect(result).to.include({ attempt: 2, outcome: Outcome.COMPLETED });
    const [session] = await sessionsOf(scheduler.client, 'silent-run');
    const [first] = session!.attempts;
    expect(first?.failure?.reason).to.equal('STAGE_TIMEOUT');
    expect(timestampMs(first!.endTime!) - timestampMs(first!.startTime!)).to.be.at.least(450);
  });

  describe('the chain', () => {
    const { signal } = new AbortController();
    const bytes = new Uint8Array([10, 0]);

    it('refuses a writer that another one has overtaken', async () => {
      const a = new Chain(bus, await lastSeqOf(bus));
      const b = new Chain(bus, await lastSeqOf(bus));
      await a.append(bytes, 'a:1', signal);
      const error = await b.append(bytes, 'b:1', signal).catch((reason) => reason);
      expect(error.reason).to.equal('STATE_FENCED');
      await a.append(bytes, 'a:2', signal);
      expect((await b.verify().catch((reason) => reason)).reason).to.equal('STATE_FENCED');
      await a.verify();
    });

    it('stores every commit once while nats-server is killed again and again', async () => {
      const chain = new Chain(bus, await lastSeqOf(bus));
      const begun = chain.seq;
      let stop = false;
      const killing = (async () => {
        for (let i = 0; i < 5; i++) {
          await sleep(50 + 37 * i);
          await nats.kill();
          await nats.start();
        }
        stop = true;
      })();
      let count = 0;
      while (!stop) {
        await chain.append(bytes, `once:${count}`, signal);
        count++;
      }
      await killing;
      expect(await lastSeqOf(bus)).to.equal(begun + count);
      expect(chain.seq).to.equal(begun + count);
      for (let i = 0; i < count; i += Math.ceil(count / 50)) {
        const stored = await bus.direct.getMessage(STREAMS.state.name, { seq: begun + 1 + i });
        expect(stored.header.get('Nats-Msg-Id')).to.equal(`once:${i}`);
      }
    });
  });

  it('reads a snapshot of many parts back as it was, and removes those of the one before', async () => {
    const blobs = createBlobStore(bus);
    const { signal } = new AbortController();
    const options = { bus, blobs, log, signal, holder: 'test', onCommitted: () => {}, onFailed: () => {} };
    const { state, journal } = await openStateLog(options);
    const spec = completeTaskSpec(taskSpec('one'));
    const records = Array.from({ length: 2_000 }, (_, i) => ({
      ...taskRecord({
        ...{ spec, filesRef: undefined, specSha256: '', createMs: 1 },
        ...{ requestId: `r-${i}`, sessionPrefix: `s-${i}` },
      }),
      taskId: `t-${i}`,
    }));
    await journal.propose(...records.map((value) => create(ChangeSchema, { kind: { case: 'task', value } })));
    const stored = async (): Promise<number> => {
      const { state: blobState } = await bus.jsm.streams.info(STREAMS.blobs.name);
      return blobState.messages;
    };
    const parts = async (): Promise<number> => {
      const query = { last_by_subj: subjects.snapshot };
      const { data } = await bus.jsm.streams.getMessage(STREAMS.snapshot.name, query);
      return fromBinary(SnapshotManifestSchema, data).parts.length;
    };
    const before = await stored();
    const size = await writeSnapshot(bus, blobs, journal.appliedSeq, [...state.changes()], signal, 100_000);
    expect(size).to.be.greaterThan(400_000);
    expect(await parts()).to.be.greaterThan(3);
    expect((await stored()) - before).to.equal(await parts());
    const again = await openStateLog(options);
    expect([...again.state.tasks.keys()]).to.deep.equal(records.map(({ taskId }) => taskId));
    await writeSnapshot(bus, blobs, again.journal.appliedSeq, [...again.state.changes()].slice(0, 9), signal);
    expect(await parts()).to.equal(0);
    expect((await stored()) - before).to.equal(1);
  });

  it('removes no part of a snapshot that another scheduler has put since', async () => {
    const blobs = createBlobStore(bus);
    const { signal } = new AbortController();
    const change = (taskId: string) =>
      create(ChangeSchema, { kind: { case: 'groupAnnounced', value: { taskId } } });
    await writeSnapshot(bus, blobs, 1, [change('a')], signal);
    // It stands still once its own counts; the other one comes to the first state again.
    const streams = Object.create(bus.jsm.streams);
    streams.purge = async (...args: Parameters<typeof bus.jsm.streams.purge>) => {
      if (args[0] === STREAMS.state.name) await writeSnapshot(bus, blobs, 3, [change('a')], signal);
      return await bus.jsm.streams.purge(...args);
    };
    const jsm = Object.assign(Object.create(bus.jsm), { streams });
    await writeSnapshot({ ...bus, jsm }, blobs, 2, [change('b')], signal);
    const { manifest } = (await readManifest(bus, signal)) ?? {};
    expect(manifest?.seq).to.equal(3n);
    const read = await Array.fromAsync(readSnapshot(blobs, manifest!, signal));
    expect(read).to.deep.equal([[change('a')]]);
  });

  it('never puts an older snapshot over a newer one', async () => {
    const blobs = createBlobStore(bus);
    const { signal } = new AbortController();
    const change = (taskId: string) =>
      create(ChangeSchema, { kind: { case: 'groupAnnounced', value: { taskId } } });
    await writeSnapshot(bus, blobs, 10, [change('a')], signal);
    const error = await writeSnapshot(bus, blobs, 5, [change('b')], signal).catch((reason) => reason);
    expect(error.reason).to.equal('STATE_FENCED');
    const stored = await bus.jsm.streams.getMessage(STREAMS.snapshot.name, {
      last_by_subj: subjects.snapshot,
    });
    expect(fromBinary(SnapshotManifestSchema, stored.data).seq).to.equal(10n);
  });
});
