import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { GroupReadySchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import {
  type Trajectory,
  type TrajectoryBatch,
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { packFloats, packIds, unpackFloats, unpackIds } from '../../common/columns.ts';
import { fromStored } from '../../common/stored.ts';
import { checkColumns, columnsOf } from './columns.ts';
import { offerOf } from './offer.ts';
import { packableBytes } from './packable.ts';
import { packedOf, unpacked } from './packed.ts';
import { decodedBatch, storedTrajectory } from './stored.ts';
import { rewardTraces } from './trace-rewards.ts';

const ids = (from: number, length: number): Uint8Array => packIds(Array.from({ length }, (_, i) => from + i));

/** A trace of so many ids for each [prompt, response], each with a call of its own. */
const built = (
  sessionId: string,
  traces: readonly (readonly [number, number])[],
  more: object = {},
): Trajectory =>
  create(TrajectorySchema, {
    ...{ sessionId, outcome: Outcome.COMPLETED, policyVersionMin: 3n, policyVersionMax: 4n, ...more },
    traces: traces.map(([prompt, response], i) => ({
      promptIds: ids(prompt, prompt),
      responseIds: ids(7 * response, response),
      lossMask: new Uint8Array(response).fill(1),
      logprobs: packFloats(Float32Array.from({ length: response }, (_, at) => -1 - at)),
      spans: [{ callId: `${sessionId}-${i}`, length: response, policyVersion: 3n }],
      images: [{ digest: 'd', sizeBytes: 3n }],
      ...(i === 1 && {
        routedExperts: { rows: new Uint8Array(prompt + response), layers: 1, topK: 1, itemBytes: 1 },
      }),
    })),
  });

const TRACES: readonly (readonly (readonly [number, number])[])[] = [
  [
    [2, 3],
    [0, 5],
  ],
  [],
  [
    [1, 0],
    [4, 70_000],
  ],
  [[9, 9]],
];

/** As it is stored, a trace of the first session with a reward of its own. */
function batchOf(): TrajectoryBatch {
  const trajectories = TRACES.map((traces, i) => {
    const more = { reward: i === 3 ? undefined : i, sampleIndex: i, drift: [{ callId: `c${i}` }] };
    const one = storedTrajectory(toBinary(TrajectorySchema, built(`s${i}`, traces, more)));
    return rewardTraces(one, i === 0 ? ([{ callId: 's0-1', reward: 0.25 }] as never) : []);
  });
  return create(TrajectoryBatchSchema, {
    batchId: 5n,
    taskId: 't',
    groupId: 'g',
    trajectories,
    deliveryCount: 2,
  });
}

const decoded = (parts: readonly Uint8Array[]): TrajectoryBatch =>
  fromStored(TrajectoryBatchSchema, Buffer.concat(parts));

describe('a batch in columns', () => {
  it('has each column as one array, and tells where a trace lies', () => {
    const { columns, details, trajectories, ...head } = decoded(columnsOf(batchOf()));
    expect(trajectories).to.deep.equal([]);
    expect(head).to.include({ batchId: 5n, taskId: 't', groupId: 'g', deliveryCount: 2 });
    const of = columns!;
    expect([...unpackIds(of.promptOffsets)]).to.deep.equal([0, 2, 2, 3, 7, 16]);
    expect([...unpackIds(of.responseOffsets)]).to.deep.equal([0, 3, 8, 8, 70_008, 70_017]);
    expect([...unpackIds(of.trajectoryIndexes)]).to.deep.equal([0, 0, 2, 2, 3]);
    expect([...unpackIds(of.promptIds)].slice(0, 3)).to.deep.equal([2, 3, 1]);
    expect([...unpackFloats(of.logprobs)].slice(0, 8)).to.deep.equal([-1, -2, -3, -1, -2, -3, -4, -5]);
    expect(of.lossMask.byteLength).to.equal(70_017);
    const floats = (bytes: Uint8Array): number[] => [...new Float64Array(new Uint8Array(bytes).buffer)];
    expect(floats(of.rewards)).to.deep.equal([0, 0.25, 2, 2, Number.NaN]);
    expect(floats(of.trajectoryRewards)).to.deep.equal([0, 1, 2, Number.NaN]);
    expect([...of.outcomes]).to.deep.equal([1, 1, 1, 1]);
    const [first] = details!.trajectories;
    expect(
      first?.traces.map(({ promptIds }) => promptIds.byteLength),
      'no columns',
    ).to.deep.equal([0, 0]);
    expect(first?.traces[1]).to.deep.include({ reward: 0.25 });
  });

  it('is taken apart into what it was made of', () => {
    const batch = batchOf();
    const again = unpacked(Buffer.concat(columnsOf(batch)));
    expect(decodedBatch(again)).to.deep.equal(decodedBatch(batch));
    expect(decoded(columnsOf(again))).to.deep.equal(decoded(columnsOf(batch)));
  });

  it('is judged by a filter as it is trace by trace', () => {
    const batch = batchOf();
    const packed = packedOf(Buffer.concat(columnsOf({ ...batch, batchId: 0n })));
    const head = create(TrajectoryBatchSchema, { batchId: 5n });
    expect(packed.tokens).to.equal(70_033);
    const filters = [
      undefined,
      {},
      { stalenessMax: 1n },
      { stalenessMax: 9n },
      { policySpanMax: 0n },
      { usableFractionMin: 0.6 },
      { dropZeroVariance: true },
      { groupTokensMax: 70_000n },
    ];
    for (const filter of filters) {
      const rules = filter as never;
      const [want, got] = [offerOf({ batch }, rules, 6n), offerOf({ batch: head, packed }, rules, 6n)];
      const { batch: wanted, ...told } = want;
      expect(got, JSON.stringify(Object.keys(filter ?? {}))).to.deep.include(told);
      const parts = got.packed === undefined ? columnsOf(got.batch) : [got.packed.body];
      expect({ ...decoded(parts), batchId: 0n }).to.deep.equal({
        ...decoded(columnsOf(wanted)),
        batchId: 0n,
      });
    }
  });

  it('is refused where the columns of a trace do not fit together', () => {
    for (const field of ['promptIds', 'responseIds', 'lossMask', 'logprobs'] as const) {
      const trajectory = built('s', [[2, 3]]);
      const [trace] = trajectory.traces;
      trace![field] = trace![field].subarray(1);
      const stored = storedTrajectory(toBinary(TrajectorySchema, trajectory));
      expect(() => checkColumns(stored), field).to.throw('do not fit together');
    }
    expect(() =>
      checkColumns(storedTrajectory(toBinary(TrajectorySchema, built('s', [[2, 3]])))),
    ).to.not.throw();
  });
});

describe('packable', () => {
  const groupOf = (...sizes: readonly number[]): Uint8Array =>
    toBinary(
      GroupReadySchema,
      create(GroupReadySchema, {
        taskId: 't',
        metadata: { a: 'b' },
        sessions: [
          ...sizes.map((size) => ({
            sessionId: 's',
            trajectory: { sha256: 'x', sizeBytes: BigInt(size), crc32: 7 },
          })),
          { sessionId: 'without' },
        ],
      }),
    );

  it('are groups of several trajectories that are small', () => {
    expect(packableBytes(groupOf(1_000, 9_000))).to.equal(10_000);
    expect(packableBytes(groupOf(1_000)), 'one').to.equal(undefined);
    expect(packableBytes(groupOf()), 'none').to.equal(undefined);
    expect(packableBytes(groupOf(1_000, 200_000)), 'large ones').to.equal(undefined);
    expect(packableBytes(groupOf(...new Array(20).fill(60_000))), 'many').to.equal(undefined);
  });
});
