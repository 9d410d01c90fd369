// What every consumer has acknowledged leaves the store when it is old enough; nothing else does.
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type Completion, CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { GroupReadySchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { subjectToken } from '../../services/common/ids.ts';
import { createLogger } from '../../services/common/logger.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { Cursors } from '../../services/reconstructor/cursors/cursors.ts';
import { createStore } from '../../services/reconstructor/retention/store.ts';
import { sweep } from '../../services/reconstructor/retention/sweep.ts';
import {
  openTrajectoryLog,
  type TrajectoryLog,
} from '../../services/reconstructor/streams/trajectory-log.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor, Trainer } from '../support/reconstructor.ts';

/** Groups of tests were complete then. */
const READY_MS = 1_700_000_000_000;

describe('reconstructor: retention', () => {
  const { signal } = new AbortController();
  let nats: TestNats;
  let mesh: Mesh;
  let reconstructor: TestReconstructor;
  before(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    reconstructor = await startReconstructor(nats.url);
  });
  after(async () => {
    await reconstructor[Symbol.asyncDispose]();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  /** Groups that the last sweep looked at. */
  let looked = 0;
  const sweepAt = async (beforeMs: number): Promise<number> => {
    const { bus, blobs } = mesh;
    const cursors = await Cursors.open(bus);
    const stored = openTrajectoryLog(bus, blobs);
    looked = 0;
    const trajectories: TrajectoryLog = {
      ...stored,
      after(...asked) {
        looked++;
        return stored.after(...asked);
      },
    };
    const retention = { store: createStore(bus), keepMs: 0 };
    const log = createLogger('test', 'silent');
    try {
      return await sweep({ cursors, trajectories, retention, log }, beforeMs, signal);
    } finally {
      cursors[Symbol.dispose]();
      trajectories[Symbol.dispose]();
    }
  };
  const count = async (stream: string, subject: string): Promise<number> => {
    const { state } = await mesh.bus.jsm.streams.info(stream, { subjects_filter: subject });
    return Object.values(state.subjects ?? {}).reduce((sum, messages) => sum + messages, 0);
  };
  const recordsOf = (session: string): Promise<number> =>
    count(STREAMS.completions.name, `polar.v1.completion.${subjectToken(session)}.*`);
  const record = (sizeBytes: number): Completion =>
    create(CompletionSchema, {
      promptSuffixIds: new Uint8Array(sizeBytes),
    } satisfies MessageInitShape<typeof CompletionSchema>);

  it('removes groups, trajectories and records that all have acknowledged, and keeps the others', async () => {
    const ids = [];
    for (const task of ['a', 'b', 'c']) {
      // The second record is too large for a message: a blob stands for it.
      await mesh.record(`${task}-0`, 1, [record(10), record(300_000 + task.charCodeAt(0))]);
      ids.push(await mesh.announceTrace(task, 100_000));
    }
    const [first, second, third] = ids as [number, number, number];
    const blobs = await count(STREAMS.blobs.name, 'polar.v1.blob.*.0');
    const [one, two] = ['one', 'two'].map((name) => new Trainer(reconstructor.client, name));
    await one?.batches(3);
    await two?.batches(3);
    const ack = (consumer: string, ...batchIds: number[]) =>
      reconstructor.client.ackTrajectories({ consumer, batchIds: batchIds.map(BigInt) });
    await ack('one', first, second, third);
    expect(await sweepAt(READY_MS), 'one consumer has them').to.equal(0);
    await ack('two', first, third);
    expect(await sweepAt(READY_MS - 1), 'too young').to.equal(0);
    expect(await sweepAt(READY_MS)).to.equal(2);
    for (const trainer of [one, two]) trainer?.close();

    expect(await count(STREAMS.trajectories.name, 'polar.v1.trajectory.>')).to.equal(1);
    for (const [session, left] of [
      ['a-0', 0],
      ['b-0', 2],
      ['c-0', 0],
    ] as const) {
      expect(await recordsOf(session), session).to.equal(left);
    }
    // Of three trajectories and three records those of one group are left.
    expect(await count(STREAMS.blobs.name, 'polar.v1.blob.*.0')).to.equal(blobs - 4);
    expect(await sweepAt(READY_MS), 'again').to.equal(0);
    const late = new Trainer(reconstructor.client, 'late');
    expect(Number((await late.batch()).batchId)).to.equal(second);
    late.close();
  });

  it('does not go through what no consumer was sent', async () => {
    for (let i = 0; i < 5; i++) await mesh.announceTrace(`unread-${i}`, 4);
    expect(await sweepAt(READY_MS)).to.equal(0);
    expect(looked).to.be.below(5);
  });

  it('keeps the records of a later attempt, which belong to a later group', async () => {
    for (const attempt of [1, 2]) await mesh.record('again-0', attempt, [record(10)]);
    const id = await mesh.announceTrace('again', 4);
    const trainer = new Trainer(reconstructor.client, 'again', 16, 'again');
    await trainer.batch();
    await reconstructor.client.ackTrajectories({ consumer: 'again', batchIds: [BigInt(id)] });
    for (const name of ['one', 'two', 'late']) await reconstructor.client.deleteConsumer({ consumer: name });
    expect(await sweepAt(READY_MS)).to.equal(1);
    trainer.close();
    const left = async (attempt: number): Promise<number> =>
      await count(STREAMS.completions.name, `polar.v1.completion.${subjectToken('again-0')}.${attempt}`);
    expect([await left(1), await left(2)]).to.deep.equal([0, 1]);
  });

  it('removes the changes that were graded, which only their group names', async () => {
    const changes = await mesh.blobs.put(Buffer.from('changes of changed-0'));
    const graded = { outcome: Outcome.COMPLETED, changes };
    const { sessions } = create(GroupReadySchema, {
      sessions: [{ sessionId: 'changed-0', attempt: 1, outcome: Outcome.COMPLETED, graded }],
    });
    const id = await mesh.announce({ taskId: 'changed', sessions });
    const trainer = new Trainer(reconstructor.client, 'changed', 16, 'changed');
    await trainer.batch();
    await reconstructor.client.ackTrajectories({ consumer: 'changed', batchIds: [BigInt(id)] });
    expect(await count(STREAMS.blobs.name, `polar.v1.blob.${changes.sha256}.*`)).to.equal(1);
    expect(await sweepAt(READY_MS)).to.equal(1);
    expect(await count(STREAMS.blobs.name, `polar.v1.blob.${changes.sha256}.*`)).to.equal(0);
    trainer.close();
  });

  it('keeps the records of an earlier attempt whose group is not acknowledged', async () => {
    for (const attempt of [1, 2]) await mesh.record('retried-0', attempt, [record(10)]);
    const results = (attempt: number) =>
      create(GroupReadySchema, {
        sessions: [{ sessionId: 'retried-0', attempt, outcome: Outcome.HARNESS_ERROR }],
      }).sessions;
    const announced = (attempt: number) =>
      mesh.announce({ taskId: 'retried', groupId: `g${attempt - 1}`, sessions: results(attempt) });
    const ids = [await announced(1), await announced(2)].map(BigInt) as [bigint, bigint];
    const trainer = new Trainer(reconstructor.client, 'retried', 16, 'retried');
    await trainer.batches(2);
    const ack = (id: bigint) => reconstructor.client.ackTrajectories({ consumer: 'retried', batchIds: [id] });
    await ack(ids[1]);
    await sweepAt(READY_MS);
    expect(await recordsOf('retried-0')).to.equal(2);
    await ack(ids[0]);
    expect(await sweepAt(READY_MS)).to.equal(2);
    expect(await recordsOf('retried-0')).to.equal(0);
    trainer.close();
  });
});
