import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type SessionRecord, TaskRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { FactSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failure } from '../../common/errors.ts';
import { ATTEMPT_BACKOFF_MS, DENIED_TARGETS_MAX, FAILURE_MESSAGE_CHARS_MAX } from '../../common/limits.ts';
import { clocksOf, sinceMs, stagesOf } from './budgets.ts';
import { applyFact } from './facts.ts';
import { groupReady } from './group.ts';
import {
  attemptLost,
  cancelled,
  dispatched,
  needsSandbox,
  Outcome,
  queuedSession,
  refOf,
  running,
  SessionState,
  sessionOf,
} from './session.ts';

type Kind = Exclude<MessageInitShape<typeof FactSchema>['kind'], undefined>;

const spec = create(TaskSpecSchema, {
  taskId: 't',
  maxAttempts: 2,
  harness: { name: 'shell' },
  evaluator: { strategy: 'test_on_output' },
});
const ungraded = create(TaskSpecSchema, { taskId: 't', maxAttempts: 2, harness: { name: 'shell' } });
const task = create(TaskRecordSchema, { taskId: 't', sessionPrefix: 's', numSamples: 1, createMs: 1_000n });
const place = { nodeId: 'n', bootId: 'b' };

const ready: Kind = { case: 'ready', value: { runtimeId: 'rt' } };
const ran: Kind = { case: 'ran', value: { outcome: Outcome.COMPLETED } };
const built: Kind = {
  case: 'built',
  value: { trajectory: { sha256: 'x', sizeBytes: 1n }, stats: { calls: 3 } },
};
const evaluated: Kind = { case: 'evaluated', value: { reward: 1 } };
const lost = (stage: string): Kind => ({
  case: 'failed',
  value: { stage, failure: failure('SANDBOX_FAILED', 'away') },
});
const wrong = (stage: string): Kind => ({
  case: 'failed',
  value: { stage, failure: failure('PREPARE_FAILED', 'exit 1') },
});

function apply(record: SessionRecord, kind: Kind, nowMs = 5_000, of = spec): SessionRecord | undefined {
  return applyFact(record, of, create(FactSchema, { ref: refOf(record), durationMs: 9n, kind }), nowMs);
}
function withFacts(record: SessionRecord, ...kinds: Kind[]): SessionRecord {
  return kinds.reduce((present, kind) => {
    const next = apply(present, kind);
    if (next === undefined) throw new Error(`${kind.case} was stale`);
    return next;
  }, record);
}

const queued = queuedSession(task, spec, 0);
const preparing = dispatched(queued, place, 2_000);
const isReady = withFacts(preparing, ready);
const isRunning = running(isReady, 6_000);
const finishing = withFacts(isRunning, ran);
const stateOf = (record: SessionRecord | undefined) => record && SessionState[sessionOf(record).state];

describe('facts', () => {
  it('move a session through its states, with stage times', () => {
    expect(sessionOf(preparing).times?.queueMs).to.equal(1_000n);
    expect(stateOf(isReady)).to.equal('READY');
    expect(isReady.runtimeId).to.equal('rt');
    expect(stateOf(finishing)).to.equal('FINISHING');
    expect(sessionOf(finishing).times).to.include({
      queueMs: 1_000n,
      prepareMs: 9n,
      readyMs: 1_000n,
      runMs: 9n,
    });
    for (const order of [
      [built, evaluated],
      [evaluated, built],
    ]) {
      const end = withFacts(finishing, ...order);
      expect(sessionOf(end)).to.include({ state: SessionState.ENDED, outcome: Outcome.COMPLETED, reward: 1 });
      expect(sessionOf(end).times).to.include({ buildMs: 9n, evaluateMs: 9n, totalMs: 4_000n });
      expect(end.built?.trajectory?.sha256).to.equal('x');
      expect(sessionOf(end).stats?.calls).to.equal(3);
    }
  });

  it('bring rewards of traces to the announcement, whichever of build and verdict comes first', () => {
    const traceRewards = [{ callId: 'c1', reward: 0.5 }];
    const graded: Kind = { case: 'evaluated', value: { reward: 1, traceRewards } };
    const announced = (end: SessionRecord) => {
      const group = groupReady({ record: task, spec, sessions: [end], round: 0 }, 0);
      return group.sessions.map(({ reward, traceRewards: own }) => [
        reward,
        own.map(({ callId, reward }) => [callId, reward]),
      ]);
    };
    for (const order of [
      [built, graded],
      [graded, built],
    ]) {
      expect(announced(withFacts(finishing, ...order))).to.deep.equal([[1, [['c1', 0.5]]]]);
    }
    expect(announced(withFacts(finishing, graded, wrong('build')))).to.deep.equal([[undefined, []]]);
  });

  it('bring what was graded to the announcement, also where the evaluation has failed by itself', () => {
    const changes = { sha256: 'c', sizeBytes: 1n };
    const graded: Kind = { case: 'evaluated', value: { reward: 1, changes } };
    const ungradable: Kind = {
      case: 'failed',
      value: { stage: 'evaluate', failure: failure('TRACE_REWARDS_INVALID', 'none'), changes },
    };
    const announced = (end: SessionRecord) => {
      const [session] = groupReady({ record: task, spec, sessions: [end], round: 0 }, 0).sessions;
      return [session?.outcome, session?.graded?.outcome, session?.graded?.changes?.sha256];
    };
    for (const order of [
      [built, graded],
      [graded, built],
    ]) {
      const end = withFacts(finishing, ...order);
      expect(announced(end)).to.deep.equal([Outcome.COMPLETED, Outcome.COMPLETED, 'c']);
    }
    const failed = withFacts(finishing, ungradable, built);
    expect(announced(failed)).to.deep.equal([Outcome.TASK_ERROR, Outcome.COMPLETED, 'c']);
    const gone = announced(cancelled(withFacts(finishing, graded), 6_000));
    expect(gone).to.deep.equal([Outcome.CANCELLED, undefined, undefined]);
    expect(withFacts(finishing, lost('evaluate')).graded).to.equal(undefined);
  });

  it('hold the clock of a run until its harness is installed, whatever comes again', () => {
    const installing: Kind = { case: 'installing', value: {} };
    const installed: Kind = { case: 'installed', value: {} };
    const clockOf = (record: SessionRecord) =>
      clocksOf(record, spec).map((one) => [one, sinceMs(record, one)]);
    expect(clockOf(isRunning)).to.deep.equal([['run', 6_000]]);
    const waits = apply(isRunning, installing, 7_000) as SessionRecord;
    expect(clockOf(waits)).to.deep.equal([['install', 7_000]]);
    expect(apply(waits, installing, 8_000)).to.equal(undefined);
    for (const before of [waits, isRunning]) {
      const goesOn = apply(before, installed, 9_000) as SessionRecord;
      expect(clockOf(goesOn)).to.deep.equal([['run', 9_000]]);
      expect(apply(goesOn, installing, 10_000)).to.equal(undefined);
      expect(apply(goesOn, installed, 10_000)).to.equal(undefined);
      expect(stateOf(apply(goesOn, ran))).to.equal('FINISHING');
    }
    const again = dispatched(apply(waits, lost('run')) as SessionRecord, place, 20_000);
    expect(clockOf(running(withFacts(again, ready), 21_000))).to.deep.equal([['run', 21_000]]);
  });

  it('are stale in every state but their own', () => {
    const states = {
      queued,
      preparing,
      isReady,
      isRunning,
      finishing,
      ended: withFacts(finishing, built, evaluated),
    };
    const own: Record<string, (keyof typeof states)[]> = {
      ready: ['preparing'],
      ran: ['isRunning'],
      built: ['finishing'],
      evaluated: ['finishing'],
      'failed prepare': ['preparing'],
      'failed run': ['isRunning'],
      'failed build': ['finishing'],
      'failed evaluate': ['finishing'],
      'failed other': [],
    };
    const kinds = {
      ready,
      ran,
      built,
      evaluated,
      ...Object.fromEntries(
        ['prepare', 'run', 'build', 'evaluate', 'other'].map((s) => [`failed ${s}`, lost(s)]),
      ),
    };
    for (const [name, kind] of Object.entries(kinds)) {
      for (const [state, record] of Object.entries(states)) {
        const fits = own[name]?.includes(state as keyof typeof states);
        expect(apply(record, kind) !== undefined, `${name} in ${state}`).to.equal(fits);
      }
    }
  });

  it('are stale when they come twice', () => {
    expect(apply(withFacts(finishing, built), built)).to.equal(undefined);
    expect(apply(withFacts(finishing, built), lost('build'))).to.equal(undefined);
    expect(apply(withFacts(finishing, evaluated), evaluated)).to.equal(undefined);
    expect(apply(withFacts(finishing, evaluated), lost('evaluate'))).to.equal(undefined);
  });

  it('are stale when attempt, node or boot is another', () => {
    const ref = refOf(preparing);
    for (const other of [
      { ...ref, attempt: 2 },
      { ...ref, nodeId: 'm' },
      { ...ref, bootId: 'c' },
    ]) {
      expect(applyFact(preparing, spec, create(FactSchema, { ref: other, kind: ready }), 0)).to.equal(
        undefined,
      );
    }
    expect(applyFact(preparing, spec, create(FactSchema, { kind: ready }), 0)).to.equal(undefined);
  });

  it('of a run grade it where its end is all that counts, and leave nothing to evaluate', () => {
    const quick = create(TaskSpecSchema, { taskId: 't', evaluator: { strategy: 'session_completed' } });
    const rewards = [Outcome.COMPLETED, Outcome.TIMEOUT, Outcome.HARNESS_ERROR].map((outcome) => {
      const graded = apply(isRunning, { case: 'ran', value: { outcome } }, 5_000, quick);
      if (graded === undefined) throw new Error('ran was stale');
      expect(stagesOf(graded, quick)).to.deep.equal(['build']);
      expect(needsSandbox(graded, quick)).to.equal(false);
      const end = apply(graded, built, 6_000, quick);
      expect(end?.evaluated?.evaluation).to.deep.equal({ completed: outcome === Outcome.COMPLETED });
      return end && sessionOf(end).reward;
    });
    expect(rewards).to.deep.equal([1, 0, 0]);
  });

  it('end a session without evaluator when it is built, and no verdict counts', () => {
    expect(apply(finishing, evaluated, 5_000, ungraded)).to.equal(undefined);
    const end = apply(finishing, built, 5_000, ungraded);
    expect(stateOf(end)).to.equal('ENDED');
    expect(end && sessionOf(end).reward).to.equal(undefined);
  });

  it('of an infrastructure failure lead to another attempt with nothing of the last one left', () => {
    const again = withFacts(withFacts(finishing, built), lost('evaluate'));
    expect(sessionOf(again)).to.include({ state: SessionState.QUEUED, attempt: 1, nodeId: '' });
    expect(sessionOf(again).failure?.reason).to.equal('SANDBOX_FAILED');
    expect(Number(again.notBeforeMs)).to.equal(5_000 + ATTEMPT_BACKOFF_MS);
    expect(again.built).to.equal(undefined);
    expect(sessionOf(again).stats).to.equal(undefined);
    const second = dispatched(again, { nodeId: 'm', bootId: 'c' }, 9_000);
    expect(sessionOf(second).attempt).to.equal(2);
    expect(sessionOf(second).failure).to.equal(undefined);
    expect(sessionOf(second).times).to.include({ queueMs: 4_000n, prepareMs: 0n, runMs: 0n });
    expect(sessionOf(second).attempts.map(({ nodeId }) => nodeId)).to.deep.equal(['n', 'm']);
    const end = withFacts(second, lost('prepare'));
    expect(sessionOf(end)).to.include({ state: SessionState.ENDED, outcome: Outcome.INFRASTRUCTURE_ERROR });
    expect(sessionOf(end).reward).to.equal(undefined);
  });

  it('tell what an attempt was not let connect to, stage by stage, and keep it with the attempt', () => {
    const tried = (record: SessionRecord, kind: Kind, count: number, ...targets: string[]): SessionRecord => {
      const fact = create(FactSchema, { ref: refOf(record), kind, denied: { count, targets } });
      return applyFact(record, spec, fact, 5_000) ?? record;
    };
    const isPrepared = tried(preparing, ready, 2, 'a:1', 'b:2');
    const end = tried(running(isPrepared, 6_000), lost('run'), 3, 'b:2', 'c:3');
    const second = withFacts(dispatched(end, place, 9_000), ready);
    expect(sessionOf(second).attempts.map(({ denied }) => denied?.count)).to.eql([5, undefined]);
    expect(sessionOf(second).attempts[0]?.denied?.targets).to.eql(['a:1', 'b:2', 'c:3']);
    const many = Array.from({ length: 30 }, (_, i) => `h:${i}`);
    const full = tried(second, ran, 30, ...many);
    expect(full, 'stale').to.equal(second);
    expect(
      sessionOf(tried(running(isPrepared, 6_000), ran, 30, ...many)).attempts[0]?.denied,
    ).to.deep.include({
      count: 32,
      targets: ['a:1', 'b:2', ...many.slice(0, DENIED_TARGETS_MAX - 2)],
    });
  });

  it('of the last attempt lose trajectory and reward, even when both were there', () => {
    const last = { ...finishing, session: { ...sessionOf(finishing), attempt: 2 } };
    const graded = withFacts(last, evaluated);
    const end = withFacts(graded, lost('build'));
    expect(sessionOf(end).outcome).to.equal(Outcome.INFRASTRUCTURE_ERROR);
    expect(sessionOf(end).reward).to.equal(undefined);
    expect(end.built).to.equal(undefined);
  });

  it('of a failure of the task end the session; of grading, with its trajectory', () => {
    for (const [record, stage] of [
      [preparing, 'prepare'],
      [isRunning, 'run'],
      [finishing, 'build'],
    ] as const) {
      const end = withFacts(record, wrong(stage));
      expect(sessionOf(end)).to.include({ state: SessionState.ENDED, outcome: Outcome.TASK_ERROR });
      expect(sessionOf(end).failure?.reason).to.equal('PREPARE_FAILED');
    }
    for (const order of [
      [built, wrong('evaluate')],
      [wrong('evaluate'), built],
    ]) {
      const end = withFacts(finishing, ...order);
      expect(sessionOf(end)).to.include({ state: SessionState.ENDED, outcome: Outcome.TASK_ERROR });
      expect(sessionOf(end).reward).to.equal(undefined);
      expect(end.built?.trajectory?.sha256).to.equal('x');
    }
  });

  it('count as the catalogue says, not as the sender does', () => {
    const kind: Kind = {
      case: 'failed',
      value: { stage: 'run', failure: { ...failure('SANDBOX_FAILED', 'x'), infrastructure: false } },
    };
    expect(stateOf(withFacts(isRunning, kind))).to.equal('QUEUED');
    const unheardOf: Kind = {
      case: 'failed',
      value: { stage: 'run', failure: { reason: 'NEW_REASON', infrastructure: true } },
    };
    expect(stateOf(withFacts(isRunning, unheardOf))).to.equal('QUEUED');
    for (const reason of ['UNAUTHENTICATED', 'SCOPE_MISSING', 'TLS_FAILED'] as const) {
      const refused: Kind = { case: 'failed', value: { stage: 'run', failure: failure(reason, 'x') } };
      expect(stateOf(withFacts(isRunning, refused)), `${reason} among services`).to.equal('QUEUED');
    }
    const silent: Kind = { case: 'failed', value: { stage: 'run' } };
    expect(sessionOf(withFacts(isRunning, silent)).failure?.reason).to.equal('INTERNAL');
  });

  it('with a reward that is no number lose the attempt', () => {
    const none = { callId: 'c1', reward: Number.NaN };
    for (const value of [{ reward: Number.NaN }, { reward: 1, traceRewards: [none] }]) {
      expect(stateOf(withFacts(finishing, { case: 'evaluated', value }))).to.equal('QUEUED');
    }
  });

  it('cannot make a record large', () => {
    const kind: Kind = {
      case: 'failed',
      value: { stage: 'run', failure: failure('SANDBOX_FAILED', 'x'.repeat(1_000_000)) },
    };
    const message = sessionOf(withFacts(isRunning, kind)).failure?.message ?? '';
    expect(message).to.have.length(FAILURE_MESSAGE_CHARS_MAX);
  });
});

describe('a session', () => {
  it('needs its sandbox until run and verdict are in', () => {
    const waits = [queued, withFacts(finishing, evaluated), withFacts(finishing, wrong('evaluate'))];
    expect(waits.map((record) => needsSandbox(record, spec))).to.deep.equal([false, false, false]);
    const uses = [preparing, isReady, isRunning, finishing, withFacts(finishing, built)];
    expect(uses.every((record) => needsSandbox(record, spec))).to.equal(true);
    expect(needsSandbox(finishing, ungraded)).to.equal(false);
  });

  it('is in the stages whose work it waits for', () => {
    const stages = [queued, preparing, isReady, isRunning, finishing].map((record) => stagesOf(record, spec));
    expect(stages).to.deep.equal([[], ['prepare'], [], ['run'], ['build', 'evaluate']]);
    expect(stagesOf(withFacts(finishing, built), spec)).to.deep.equal(['evaluate']);
    expect(stagesOf(finishing, ungraded)).to.deep.equal(['build']);
  });

  it('is cancelled in any state without a trajectory, and its attempt ends', () => {
    for (const record of [queued, preparing, isRunning, withFacts(finishing, built)]) {
      const end = cancelled(record, 8_000);
      expect(sessionOf(end)).to.include({ state: SessionState.ENDED, outcome: Outcome.CANCELLED });
      expect(sessionOf(end).failure?.reason).to.equal('CANCELLED');
      expect(end.built).to.equal(undefined);
      expect(sessionOf(end).attempts.every(({ endTime }) => endTime !== undefined)).to.equal(true);
    }
  });

  it('never changes a record in place', () => {
    const before = JSON.stringify(finishing, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
    withFacts(finishing, built, evaluated);
    attemptLost(finishing, failure('NODE_LOST', 'gone'), 5, 1);
    cancelled(finishing, 1);
    const then = JSON.stringify(finishing, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
    expect(then).to.equal(before);
  });
});
