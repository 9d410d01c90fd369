import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { type TaskSpec, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type SessionRecord, TaskRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { FactSchema, HeartbeatSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { reasonOf } from '../../../test/support/reason-of.ts';
import { reread, set, stateWith } from '../../../test/support/scheduler-state.ts';
import { failure } from '../../common/errors.ts';
import { sha256 } from '../../common/ids.ts';
import { budgetMs, CLOSE_MS, clocksOf, newStages, sinceMs, stagesOf } from './budgets.ts';
import {
  isOpenBy,
  keyFor,
  OPEN_SESSIONS_PER_NODE_MAX,
  opened,
  placeFor,
  requestIdFault,
  sessionFor,
} from './external.ts';
import { type CloseRequest, closedAs, closeFaults, outOfTime } from './external-end.ts';
import { applyFact } from './facts.ts';
import { groupReady } from './group.ts';
import { type NodeState, Nodes, sessionsOn } from './nodes.ts';
import { ranMs } from './ran.ts';
import {
  attemptLost,
  changeMs,
  needsSandbox,
  Outcome,
  queuedSession,
  refOf,
  SessionState,
  sessionOf,
} from './session.ts';
import { capabilityOf, workOf } from './work.ts';

type SpecInit = Exclude<MessageInitShape<typeof TaskSpecSchema>, TaskSpec>;
type Kind = Exclude<MessageInitShape<typeof FactSchema>['kind'], undefined>;

const REQUEST = '7b0e5f0c-8f43-4b0e-9f58-1f4bb7c7d1aa';
const external: SpecInit = {
  ...{ taskId: 't', maxAttempts: 3, harness: { name: 'external', modelName: 'm', modelPools: ['pool/a'] } },
  budgets: { run: durationFromMs(60_000) },
};
const specWith = (over: SpecInit = {}): TaskSpec => create(TaskSpecSchema, { ...external, ...over });
const spec = specWith();
const task = create(TaskRecordSchema, { taskId: 't', sessionPrefix: 's', numSamples: 3, createMs: 1_000n });
const place = { nodeId: 'n', bootId: 'b' };
const queued = (i = 0): SessionRecord => queuedSession(task, spec, i);
const open = opened(queued(), place, { requestId: REQUEST, leaseMs: 0 }, 2_000);

const close = (over: Partial<CloseRequest> = {}): CloseRequest => ({
  ...{ sessionId: 's-0', attempt: 1, outcome: Outcome.UNSPECIFIED, reward: undefined, message: '' },
  traceRewards: {},
  ...over,
});

/** After these facts. */
function withFacts(record: SessionRecord, of: TaskSpec, ...kinds: Kind[]): SessionRecord {
  return kinds.reduce((present, kind) => {
    const fact = create(FactSchema, { ref: refOf(present), durationMs: 9n, kind });
    const next = applyFact(present, of, fact, 50_000);
    if (next === undefined) throw new Error(`${kind.case} was stale`);
    return next;
  }, record);
}
const ranAs = (outcome: Outcome): Kind => ({ case: 'ran', value: { outcome, calls: { calls: 2 } } });
const built: Kind = { case: 'built', value: { trajectory: { sha256: 'x' }, stats: { calls: 2 } } };

function nodeOf(id: string, proxyUrl = 'http://proxy', sessions = 0): NodeState {
  const nodes = new Nodes();
  const { node } = nodes.beat(create(HeartbeatSchema, { nodeId: id, bootId: `b-${id}`, proxyUrl }), 0, 0);
  for (let i = 0; i < sessions; i++) node.open.add(`s-${i}`);
  return node;
}

describe('a session that runs elsewhere', () => {
  it('runs at once on the node that it was opened on, and takes no slot of it', () => {
    expect(sessionOf(open)).to.include({ state: SessionState.RUNNING, attempt: 1, nodeId: 'n' });
    expect(sessionOf(open).times?.queueMs).to.equal(1_000n);
    const nodes = new Nodes();
    nodes.move(queued(), open, 0);
    const node = nodes.get('n') as NodeState;
    expect([node.running.size, node.open.size]).to.deep.equal([0, 1]);
    expect(sessionsOn(node)).to.deep.equal(['s-0']);
    expect(needsSandbox(open, spec)).to.equal(false);
    const end = closedAs(open, close(), 30_000);
    expect(ranMs(end, withFacts(end, spec, ranAs(Outcome.COMPLETED)), spec), 'of its queue').to.equal(
      undefined,
    );
    nodes.move(open, attemptLost(open, failure('PROXY_CLOSE_FAILED', 'away'), 3, 3_000), 0);
    expect([node.open.size, node.failures.count]).to.deep.equal([0, 0]);
  });

  it('has a key that follows from its request and is stored as a digest', () => {
    const key = keyFor(REQUEST, sessionOf(open));
    expect(key).to.match(/^[\w-]{43}$/);
    expect(open.opened).to.include({ keySha256: sha256(key), requestSha256: sha256(REQUEST) });
    const others = [
      keyFor(REQUEST, { sessionId: 's-0', attempt: 2 }),
      keyFor(REQUEST, { sessionId: 's-1', attempt: 1 }),
      keyFor(`${REQUEST} `, { sessionId: 's-0', attempt: 1 }),
    ];
    expect(new Set([key, ...others])).to.have.length(4);
    expect(capabilityOf(open, spec, sha256(key), 7)).to.deep.include({
      ...{ ref: refOf(open), digest: sha256(key), expireMs: 7n, modelName: 'm', modelPools: ['pool/a'] },
    });
    expect(['', REQUEST, 'x'.repeat(128)].map(requestIdFault)).to.deep.equal(Array(3).fill(undefined));
    for (const bad of ['x'.repeat(31), 'x'.repeat(129)]) expect(requestIdFault(bad)).to.contain('32 to 128');
  });

  it('is the same one for a replay, and for others the next that waits', () => {
    const records = [open, queued(1), queued(2)];
    expect(sessionFor(records, REQUEST)).to.equal(open);
    expect(sessionFor(records, 'other')).to.equal(records[1]);
    expect(isOpenBy(open, REQUEST)).to.equal(true);
    expect(isOpenBy(open, 'other')).to.equal(false);
    expect(reasonOf(() => sessionFor([open], 'other'))).to.equal('NO_SESSION_WAITS');
    const closed = closedAs(open, close({ reward: 1 }), 30_000);
    for (const over of [closed, withFacts(closed, spec, ranAs(Outcome.COMPLETED), built)])
      expect(reasonOf(() => sessionFor([over, queued(1)], REQUEST))).to.equal('SESSION_CLOSED');
    const lost = attemptLost(open, failure('NODE_LOST', 'away'), 3, 3_000);
    expect(sessionFor([queued(1), lost], REQUEST), 'its attempt is gone').to.have.nested.property(
      'session.sampleIndex',
      1,
    );
  });

  it('goes to the node with the fewest, which has to say where its proxy is', () => {
    const free = (): boolean => false;
    const nodes = [nodeOf('a', 'http://a', 2), nodeOf('b', 'http://b', 1), nodeOf('old', '', 0)];
    expect(placeFor(nodes, free)).to.include({ bootId: 'b-b' });
    expect(placeFor(nodes, ({ id }) => id === 'b')).to.include({ bootId: 'b-a' });
    const full = nodeOf('c', 'http://c', OPEN_SESSIONS_PER_NODE_MAX);
    for (const none of [[], [full], [nodeOf('old', '', 0)]])
      expect(reasonOf(() => placeFor(none, free))).to.equal('NO_NODE');
    expect(reasonOf(() => placeFor(nodes, () => true))).to.equal('NO_NODE');
  });
});

describe('the end of a session that runs elsewhere', () => {
  it('is what its caller says, the same again for a replay, and nothing else after it', () => {
    const closed = closedAs(open, close({ reward: 0.5 }), 30_000);
    expect(closed.closed).to.include({ outcome: Outcome.COMPLETED, reward: 0.5, closeMs: 30_000n });
    const end = withFacts(closed, spec, ranAs(Outcome.COMPLETED), built);
    for (const record of [closed, end]) {
      expect(closedAs(record, close({ reward: 0.5 }), 99_000)).to.equal(record);
      expect(() => closedAs(record, close({ reward: 1 }), 99_000)).to.throw('COMPLETED with reward 0.5');
    }
    for (const [record, attempt] of [
      [queued(), 1],
      [open, 2],
      [attemptLost(open, failure('NODE_LOST', 'away'), 3, 3_000), 1],
    ] as const)
      expect(reasonOf(() => closedAs(record, close({ attempt }), 9_000))).to.equal('SESSION_CLOSED');
  });

  it('is refused with all that is wrong in it', () => {
    const faults = (over: Partial<CloseRequest>, hasEvaluator = false): string[] =>
      closeFaults(close(over), hasEvaluator).map(({ field }) => field);
    expect(faults({ outcome: Outcome.HARNESS_ERROR, reward: -1, message: 'why' })).to.deep.equal([]);
    expect(faults({ outcome: Outcome.TIMEOUT, reward: Number.NaN, message: 'x' })).to.deep.equal([
      ...['outcome', 'reward', 'message'],
    ]);
    expect(faults({ reward: 1e7 })).to.deep.equal(['reward']);
    expect(faults({ reward: 1 }, true), 'its evaluator rewards').to.deep.equal(['reward']);
    expect(faults({}, true)).to.deep.equal([]);
    const long = { outcome: Outcome.HARNESS_ERROR, message: 'x'.repeat(2_001) };
    expect(faults(long)).to.deep.equal(['message']);
  });

  it('may reward single calls, which have to be its own', () => {
    const traceRewards = { 'call-b': 0.5, 'call-a': -1 };
    const closed = closedAs(open, close({ reward: 1, traceRewards }), 30_000);
    const [work] = [workOf(closed, spec, 'close').kind.value];
    expect(work).to.deep.include({ rewardedCalls: ['call-b', 'call-a'] });
    const end = withFacts(closed, spec, ranAs(Outcome.COMPLETED), built);
    const group = groupReady({ record: task, spec, sessions: [end], round: 0 }, 0);
    expect(
      group.sessions.map((one) => one.traceRewards.map(({ callId, reward }) => [callId, reward])),
    ).to.deep.equal([Object.entries(traceRewards)]);
    const again = { 'call-a': -1, 'call-b': 0.5 };
    expect(closedAs(end, close({ reward: 1, traceRewards: again }), 99_000)).to.equal(end);
    expect(reasonOf(() => closedAs(end, close({ reward: 1 }), 99_000))).to.equal('SESSION_CLOSED');
    const failed = failure('TRACE_REWARDS_INVALID', 'call-b is not there');
    const value = { outcome: Outcome.COMPLETED, rewardsFailure: failed };
    const wrong = withFacts(closed, spec, { case: 'ran', value }, built);
    expect(sessionOf(wrong)).to.include({ outcome: Outcome.TASK_ERROR, failure: failed });
    expect([sessionOf(wrong).reward, wrong.built === undefined]).to.deep.equal([undefined, false]);
    const faults = (over: Partial<CloseRequest>): string[] =>
      closeFaults(close(over), false).map(({ field }) => field);
    expect(faults({ traceRewards }), 'beside nothing').to.deep.equal(['trace_rewards']);
    expect(faults({ reward: 1, traceRewards: { a: Number.NaN, 'b c': 1 } })).to.deep.equal([
      ...['trace_rewards.a', 'trace_rewards.b c'],
    ]);
    const many = Object.fromEntries(Array.from({ length: 2_049 }, (_, i) => [`c-${i}`, 1]));
    expect(faults({ reward: 1, traceRewards: many })).to.deep.equal(['trace_rewards']);
  });

  it('is work for its node, and gives the session its outcome, reward and time', () => {
    const closed = closedAs(
      open,
      close({ outcome: Outcome.HARNESS_ERROR, reward: -1, message: 'no' }),
      30_000,
    );
    expect(newStages(open, closed, spec)).to.deep.equal(['close']);
    expect(changeMs(closed)).to.equal(30_000);
    const { kind } = workOf(closed, spec, 'close');
    expect(kind.value).to.deep.include({ outcome: Outcome.HARNESS_ERROR });
    const { case: _, value } = kind as Extract<typeof kind, { case: 'close' }>;
    expect(value.failure).to.include({ reason: 'HARNESS_EXIT', message: 'no', infrastructure: false });
    const failed: Kind = { case: 'ran', value: { outcome: value.outcome, failure: value.failure as never } };
    const end = withFacts(closed, spec, failed, built);
    expect(sessionOf(end)).to.include({
      state: SessionState.ENDED,
      outcome: Outcome.HARNESS_ERROR,
      reward: -1,
    });
    expect(sessionOf(end).times?.runMs).to.equal(28_000n);
  });

  it('without a reward has none, as its evaluator says where there is one', () => {
    const closed = closedAs(open, close(), 30_000);
    expect(sessionOf(withFacts(closed, spec, ranAs(Outcome.COMPLETED), built)).reward).to.equal(undefined);
    const graded = specWith({ evaluator: { strategy: 'session_completed' } });
    expect(sessionOf(withFacts(closed, graded, ranAs(Outcome.COMPLETED), built)).reward).to.equal(1);
  });

  it('comes by its time limit where nobody closes it, and then it is not graded', () => {
    expect([stagesOf(open, spec), clocksOf(open, spec), sinceMs(open, 'run')]).to.deep.equal([
      ...[[], ['run'], 2_000],
    ]);
    const late = outOfTime(open, 62_001);
    expect(clocksOf(late, spec)).to.deep.equal(['close']);
    expect([sinceMs(late, 'close'), budgetMs(spec, 'close')]).to.deep.equal([62_001, CLOSE_MS]);
    for (const strategy of ['', 'session_completed', 'rubric']) {
      const of = strategy === '' ? spec : specWith({ evaluator: { strategy } });
      const end = withFacts(late, of, ranAs(Outcome.TIMEOUT), built);
      expect(sessionOf(end)).to.include({ state: SessionState.ENDED, outcome: Outcome.TIMEOUT });
      expect(sessionOf(end).reward, strategy).to.equal(undefined);
      expect(end.built?.trajectory?.sha256).to.equal('x');
    }
  });

  it('by infrastructure gives it a next attempt, for who opens it again, and no reward', () => {
    const closed = closedAs(open, close({ reward: 1 }), 30_000);
    const away = failure('ENGINE_UNAVAILABLE', 'away');
    const again = withFacts(closed, spec, { case: 'failed', value: { stage: 'run', failure: away } });
    expect(sessionOf(again)).to.include({ state: SessionState.QUEUED, attempt: 1 });
    expect([again.opened, again.closed, sessionOf(again).reward]).to.deep.equal(Array(3).fill(undefined));
    expect(sessionOf(opened(again, place, { requestId: REQUEST, leaseMs: 0 }, 60_000)).attempt).to.equal(2);
  });

  it('is in the state as a snapshot keeps it', () => {
    const { state, task: own } = stateWith(external);
    const closed = closedAs(
      opened(state.session(own, 1), place, { requestId: REQUEST, leaseMs: 0 }, 2_000),
      close({ reward: 1 }),
      30_000,
    );
    set(state, closed);
    const again = reread(state);
    const known = again.tasks.get('t')?.sessions[1];
    expect([known?.opened, known?.closed]).to.deep.equal([closed.opened, closed.closed]);
    expect(again.activityMs).to.equal(30_000);
  });
});
