import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import {
  type StreamFilter,
  StreamFilterSchema,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { judge, type SessionView, type Verdict } from './filter.ts';
import { offerOf } from './offer.ts';
import { decodedBatch, storedTrajectory } from './stored.ts';

const filter = (rules: Partial<StreamFilter>): StreamFilter => create(StreamFilterSchema, rules as never);
const session = (reward: number | undefined, min = 5, max = min, tokens = 10, own = [reward]) => ({
  reward,
  traceRewards: () => own.filter((one) => one !== undefined),
  policyVersionMin: BigInt(min),
  policyVersionMax: BigInt(max),
  tokens,
});

const judged = (
  rules: StreamFilter | undefined,
  version: bigint,
  sessions: readonly SessionView[],
  taskId = 'run7-a',
): Verdict => judge(rules, version, { taskId, sessions });

describe('stream filter', () => {
  it('drops nothing where it has no rules', () => {
    const all = [session(1, 0), session(undefined, 0, 9, 0)];
    const verdict = { group: '', sessions: ['', ''], tokens: 10 };
    expect(judged(undefined, 9n, all)).to.deep.equal(verdict);
    expect(judged(filter({}), 9n, all)).to.deep.equal(verdict);
  });

  it('drops sessions that are stale, or span too many versions, each by name', () => {
    const all = [session(1, 7), session(0, 8), session(1, 8, 9), session(0, 5, 9, 0)];
    const rules = filter({ stalenessMax: 1n, policySpanMax: 0n });
    expect(judged(rules, 9n, all)).to.deep.equal({
      group: '',
      sessions: ['stale', '', 'policy_span', ''],
      tokens: 10,
    });
    expect(judged(filter({ stalenessMax: 0n }), 5n, [session(1, 6)]).sessions, 'ahead').to.deep.equal(['']);
  });

  it('drops a group of whose sessions nothing is left', () => {
    expect(judged(filter({ stalenessMax: 1n }), 9n, [session(1), session(0)]).group).to.equal(
      'sessions_dropped',
    );
    expect(judged(filter({ stalenessMax: 1n }), 9n, [session(undefined, 0, 0, 0)]).group, 'failed').to.equal(
      '',
    );
  });

  it('sees where equal sessions have traces with other rewards', () => {
    const group = (...own: number[][]): string =>
      judged(
        filter({ dropZeroVariance: true }),
        5n,
        own.map((one) => session(1, 5, 5, 10, one)),
      ).group;
    expect(group([1, 1], [1])).to.equal('zero_variance');
    expect(group([1, 0.5], [1])).to.equal('');
    expect(group([1, 0.5]), 'compared with no other').to.equal('zero_variance');
  });

  it('drops groups of other tasks before it looks at anything else', () => {
    const rules = filter({ taskIdPrefix: 'run7-', stalenessMax: 0n });
    const ofTask = (taskId: string): Verdict => judged(rules, 9n, [session(1), session(0, 9)], taskId);
    expect(ofTask('run7-12')).to.deep.equal({ group: '', sessions: ['stale', ''], tokens: 10 });
    const other = { group: 'other_task', sessions: ['', ''], tokens: 0 };
    for (const taskId of ['run8-12', 'run7', 'a-run7-12']) expect(ofTask(taskId)).to.deep.equal(other);
  });

  it('drops groups by what is left of them', () => {
    const all = [session(1), session(1), session(undefined), session(0, 1)];
    const group = (rules: Partial<StreamFilter>): string => judged(filter(rules), 5n, all).group;
    expect(group({ usableFractionMin: 0.75 })).to.equal('');
    expect(group({ usableFractionMin: 0.76 })).to.equal('usable_fraction');
    expect(group({ usableFractionMin: 0.75, stalenessMax: 1n })).to.equal('usable_fraction');
    expect(group({ dropZeroVariance: true })).to.equal('');
    expect(group({ dropZeroVariance: true, stalenessMax: 1n })).to.equal('zero_variance');
    expect(group({ groupTokensMax: 40n })).to.equal('');
    expect(group({ groupTokensMax: 39n })).to.equal('group_tokens');
    expect(group({ groupTokensMax: 39n, stalenessMax: 1n })).to.equal('');
  });

  it('leaves the heads, and takes the traces, of what it drops', () => {
    const traces = [{ promptIds: new Uint8Array(8), responseIds: new Uint8Array(12) }];
    const trajectories = [4n, 9n].map((policyVersionMin, i) => ({
      sessionId: `s${i}`,
      reward: i,
      policyVersionMin,
      policyVersionMax: 9n,
      traces,
    }));
    const batch = create(TrajectoryBatchSchema, { batchId: 3n, trajectories });
    const partly = offerOf({ batch }, filter({ stalenessMax: 1n }), 9n);
    expect(partly).to.deep.include({ tokens: 5, droppedReason: '', droppedSessions: { stale: 1 } });
    const [stale, kept] = partly.batch.trajectories;
    expect(stale).to.include({ sessionId: 's0', reward: 0, droppedReason: 'stale' });
    expect([stale?.traces.length, kept?.traces.length]).to.deep.equal([0, 1]);
    const whole = offerOf({ batch }, filter({ groupTokensMax: 9n }), 9n);
    expect(whole).to.deep.include({ tokens: 0, droppedReason: 'group_tokens', droppedSessions: {} });
    expect(whole.batch.trajectories.map((one) => one.traces.length)).to.deep.equal([0, 0]);
    const stored = batch.trajectories.map((one) => storedTrajectory(toBinary(TrajectorySchema, one)));
    const same = offerOf({ batch: { ...batch, trajectories: stored } }, filter({ stalenessMax: 1n }), 9n);
    expect(decodedBatch(same.batch), 'stored').to.deep.equal(partly.batch);
    expect(offerOf({ batch }, filter({}), 9n).batch, 'not copied').to.equal(batch);
    expect(batch.trajectories[0]?.traces.length).to.equal(1);
  });
});
