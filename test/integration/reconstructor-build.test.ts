// `build` work to `built` facts, over a real NATS server.
import { create, fromBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { RoutedExpertsSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { type Trajectory, TrajectorySchema } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { INLINE_BYTES_MAX } from '../../services/common/limits.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { build } from '../../services/reconstructor/domain/build.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { eventually } from '../support/eventually.ts';
import { seeded } from '../support/laws.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor } from '../support/reconstructor.ts';
import { type RecordedCall, recordsOf } from '../support/records.ts';
import { madeUpSession } from '../support/sessions.ts';

/** Turns that append to each other. */
const conversation = (turns: number, idsPerTurn: number): RecordedCall[] => {
  const history: number[] = [];
  return Array.from({ length: turns }, (_, turn) => {
    const column = (start: number): number[] => Array.from({ length: idsPerTurn }, (_, i) => start + i);
    history.push(...column(turn));
    const prompt_ids = [...history];
    const sampled_ids = column(turn + 1000);
    history.push(...sampled_ids);
    return {
      call_id: `c${turn}`,
      start_seq: turn * 2,
      end_seq: turn * 2 + 1,
      prompt_ids,
      sampled_ids,
      logprobs: sampled_ids.map(() => -0.25),
      finish_reason: 'stop',
      model: 'policy',
      policy_version: 3,
      messages: [`u${turn}`],
      reply: `a${turn}`,
    };
  });
};

describe('reconstructor: build', () => {
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

  const built = async (session: string): Promise<Trajectory> => {
    const fact = await mesh.fact(session);
    if (fact.kind.case !== 'built') throw new Error(`${fact.kind.case}`);
    return fromBinary(TrajectorySchema, await mesh.blobs.get(fact.kind.value.trajectory!));
  };

  const failure = async (session: string) => {
    const fact = await mesh.fact(session);
    if (fact.kind.case !== 'failed') throw new Error(`${fact.kind.case}`);
    return fact.kind.value;
  };

  it('builds the routed experts of records that are larger than a message', async () => {
    const calls = conversation(3, 1000);
    const records = recordsOf(calls);
    const shape = { layers: 60, topK: 8, itemBytes: 1 };
    for (const [i, { prompt_ids, sampled_ids }] of calls.entries()) {
      const first = i === 0 ? 0 : records[i]!.baseLength - 1;
      const rows = new Uint8Array((prompt_ids.length + sampled_ids.length - 1 - first) * 480).fill(i + 1);
      records[i]!.routedExperts = create(RoutedExpertsSchema, { rows, first, ...shape });
    }
    expect(records[0]!.routedExperts!.rows.length).to.be.above(INLINE_BYTES_MAX);
    await mesh.askForBuild(
      'experts',
      1,
      'prefix_merging',
      (await mesh.record('experts', 1, records)) as never,
    );
    const { traces, stats } = await built('experts');
    expect(traces).to.deep.equal(build('prefix_merging', expand(records)).traces);
    expect(stats?.expertsDropped).to.deep.equal({});
    const [{ routedExperts }] = traces as [Trajectory['traces'][number]];
    expect([...routedExperts!.known.subarray(0, -1)]).to.not.include(0);
    expect([0, 1999, 3999].map((id) => routedExperts!.rows[id * 480])).to.deep.equal([1, 2, 3]);
  });

  it('builds what the records of the attempt say, few or many, between those of others', async () => {
    for (const calls of [3, 60]) {
      const records = recordsOf(madeUpSession(seeded(calls), calls, 40));
      const session = `s-${calls}`;
      await mesh.record(session, 1, records.slice(0, 1)); // Of an earlier attempt.
      const range = await mesh.record(session, 2, records);
      await mesh.record('another', 1, records);
      await mesh.askForBuild(session, 2, 'prefix_merging', range as never);
      const trajectory = await built(session);
      const want = build('prefix_merging', expand(records));
      expect(trajectory.traces).to.deep.equal(want.traces);
      expect(trajectory.stats).to.deep.equal(want.stats);
      expect(trajectory.drift).to.deep.equal(want.drift);
      expect(trajectory.builder).to.equal('prefix_merging');
      expect(trajectory).to.include({ sessionId: session, taskId: 'task', attempt: 2 });
      const fact = await mesh.fact(session);
      expect(fact.ref).to.include({ nodeId: 'n1', bootId: 'b1', attempt: 2 });
      expect(fact.kind.value).to.deep.include({ stats: want.stats });
    }
    await eventually('no consumer is left on the stream', async () => {
      const stream = await mesh.bus.jsm.streams.info(STREAMS.completions.name);
      return stream.state.consumer_count === 0;
    });
  });

  it('builds with per_request where the task names no builder', async () => {
    const range = await mesh.record('s-default', 1, recordsOf(conversation(3, 5)));
    await mesh.askForBuild('s-default', 1, '', range as never);
    const { builder, traces } = await built('s-default');
    expect(builder).to.equal('per_request');
    expect(traces.length).to.equal(3);
  });

  it('makes a trajectory without traces of an attempt without calls', async () => {
    await mesh.askForBuild('s-none', 1, 'prefix_merging', undefined);
    const { traces, stats } = await built('s-none');
    expect(traces).to.deep.equal([]);
    expect(stats).to.include({ calls: 0, sampledTokens: 0n });
  });

  it('reads records above the inline limit, and makes a trajectory of megabytes', async () => {
    const idsPerTurn = INLINE_BYTES_MAX / 4;
    const range = await mesh.record('s-large', 1, recordsOf(conversation(4, idsPerTurn)));
    await mesh.askForBuild('s-large', 1, 'prefix_merging', range as never);
    const { traces, stats } = await built('s-large');
    expect(traces.length).to.equal(1);
    expect(stats?.trainedTokens).to.equal(BigInt(idsPerTurn * 4));
    expect(traces[0]?.promptIds.length).to.equal(idsPerTurn * 4);
    expect(traces[0]?.responseIds.length).to.equal(idsPerTurn * 4 * 7);
  });

  it('counts calls whose ids are not as many as the engine says', async () => {
    const records = recordsOf(conversation(3, 5));
    records[1]!.usage!.completionTokens = 9;
    const range = await mesh.record('s-usage', 1, records);
    await mesh.askForBuild('s-usage', 1, 'prefix_merging', range as never);
    expect((await built('s-usage')).stats?.usageMismatches).to.equal(1);
  });

  it('tells a failure with its reason when the builder is unknown or a record is invalid', async () => {
    await mesh.askForBuild('s-unknown', 1, 'telepathy', undefined);
    const unknown = await failure('s-unknown');
    expect(unknown.stage).to.equal('build');
    expect(unknown.failure).to.include({ reason: 'UNKNOWN_BUILDER', infrastructure: false });

    const records = recordsOf(conversation(2, 5));
    records[1]!.baseLength = 1000;
    await mesh.askForBuild(
      's-invalid',
      1,
      'prefix_merging',
      (await mesh.record('s-invalid', 1, records)) as never,
    );
    expect((await failure('s-invalid')).failure).to.include({
      reason: 'RECORDS_INVALID',
      infrastructure: true,
    });
  });

  it('tries again while records are missing, then tells so: never a trajectory with a hole', async () => {
    for (const [session, drop] of [
      ['s-hole', 1],
      ['s-tail', 2],
    ] as const) {
      const records = recordsOf(conversation(3, 5));
      const range = await mesh.record(session, 1, records.toSpliced(drop, 1));
      await mesh.askForBuild(session, 1, 'prefix_merging', { ...range, calls: 3 } as never);
    }
    for (const session of ['s-hole', 's-tail']) {
      expect((await failure(session)).failure).to.include({
        reason: 'RECORDS_MISSING',
        infrastructure: true,
      });
    }
  });

  it('puts work that cannot be read into the dead letters and goes on', async () => {
    await publish(mesh.bus, mesh.blobs, subjects.work('build', ''), new Uint8Array([1, 2, 3]));
    await mesh.askForBuild('s-after', 1, 'prefix_merging', undefined);
    await built('s-after');
    await eventually('it is a dead letter', async () => {
      const dead = await mesh.bus.jsm.streams.info(STREAMS.dead.name, { subjects_filter: '>' });
      return Object.keys(dead.state.subjects ?? {}).includes(subjects.dead(STREAMS.work.name));
    });
  });

  it('builds once what is delivered again, and goes on after a kill of the server', async () => {
    const range = await mesh.record('s-killed', 1, recordsOf(conversation(30, 100)));
    await mesh.askForBuild('s-killed', 1, 'prefix_merging', range as never);
    await nats.kill();
    await nats.start();
    const first = await built('s-killed');
    await mesh.askForBuild('s-killed', 1, 'prefix_merging', range as never);
    await mesh.askForBuild('s-last', 1, 'prefix_merging', undefined);
    await built('s-last');
    expect(first.traces.length).to.equal(1);
    const facts = await mesh.bus.jsm.streams.info(STREAMS.facts.name);
    const ofSession = [];
    for (let seq = facts.state.first_seq; seq <= facts.state.last_seq; seq++) {
      const message = await mesh.bus.jsm.streams
        .getMessage(STREAMS.facts.name, { seq })
        .catch(() => undefined);
      if (message && Buffer.from(message.data).includes('s-killed')) ofSession.push(message);
    }
    expect(ofSession.length).to.equal(1);
  });
});
