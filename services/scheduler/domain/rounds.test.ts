import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { RetryOnly } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { away, begun, end, reread, set, stateWith } from '../../../test/support/scheduler-state.ts';
import { QUEUES_REMEMBERED_MAX, TOMBSTONES_MAX } from '../../common/limits.ts';
import { clocksOf } from './budgets.ts';
import { callbackBody } from './callback.ts';
import { stopAtMs } from './early-stop.ts';
import { groupReady } from './group.ts';
import { goesAgain } from './retry.ts';
import { isAnnounced } from './rounds.ts';
import {
  attemptLost,
  cancelled,
  dispatched,
  groupIdOf,
  moved,
  Outcome,
  retried,
  roundOf,
  SessionState,
  sessionOf,
  stoppedEarly,
} from './session.ts';
import {
  announcedChange,
  callbackChange,
  drainChange,
  isSettled,
  type State,
  type TaskState,
  tombstoneChange,
} from './state.ts';
import { taskView } from './view.ts';

describe('sessions that go again', () => {
  const done = (): { state: State; task: TaskState } => {
    const { state, task } = stateWith();
    end(state, task, 0, Outcome.COMPLETED);
    end(state, task, 1, Outcome.INFRASTRUCTURE_ERROR);
    end(state, task, 2, Outcome.HARNESS_ERROR);
    state.apply(announcedChange(task));
    return { state, task };
  };

  it('are chosen by how they ended', () => {
    const { state, task } = done();
    const chosen = (only: RetryOnly): number[] =>
      [0, 1, 2].filter((i) => goesAgain(state.session(task, i), only));
    expect(chosen(RetryOnly.UNSPECIFIED)).to.deep.equal([1]);
    expect(chosen(RetryOnly.INFRASTRUCTURE)).to.deep.equal([1]);
    expect(chosen(RetryOnly.FAILED)).to.deep.equal([1, 2]);
    expect(chosen(RetryOnly.MISSING)).to.deep.equal([1]);
    const queued = stateWith();
    expect(goesAgain(queued.state.session(queued.task, 0), RetryOnly.FAILED)).to.equal(false);
    const early = stoppedEarly(begun(queued.state, queued.task, 0), 2, 3_000);
    expect(goesAgain(early, RetryOnly.MISSING)).to.equal(false);
    const stopped = cancelled(begun(queued.state, queued.task, 0), 3_000);
    expect(goesAgain(stopped, RetryOnly.MISSING)).to.equal(true);
    expect(goesAgain(stopped, RetryOnly.FAILED)).to.equal(false);
  });

  it('are a group of their own after the announcement, with their own results only', () => {
    const { state, task } = done();
    expect(task).to.include({ round: 0, announcedRounds: 1 });
    const before = sessionOf(state.session(task, 1));
    set(state, retried(state.session(task, 1), groupIdOf(1), 4_000));
    expect(task).to.include({ round: 1, announcedRounds: 1 });
    expect(taskView(task).sessionsByOutcome).to.deep.equal({ completed: 1, harness_error: 1 });
    expect(state.liveSessions).to.equal(1);
    const again = sessionOf(state.session(task, 1));
    expect(again).to.include({ groupId: 'g1', state: SessionState.QUEUED, outcome: Outcome.UNSPECIFIED });
    expect(again.attempts).to.deep.equal(before.attempts);
    end(state, task, 1, Outcome.COMPLETED, 5_000);
    expect(
      groupReady(task, 0).sessions.map(({ sampleIndex, attempt }) => [sampleIndex, attempt]),
    ).to.deep.equal([[1, 2]]);
    state.apply(announcedChange({ ...task, round: 0 }));
    expect(isAnnounced(task)).to.equal(false);
    state.apply(announcedChange(task));
    expect(isAnnounced(task)).to.equal(true);
    expect(taskView(task)).to.deep.include({ groupId: 'g1', meanReward: 1 });
    set(state, retried(state.session(task, 2), groupIdOf(2), 6_000));
    expect(taskView(task), 'without that of the one that goes again').to.deep.include({ meanReward: 1 });
  });

  it('have as many attempts as at first, and keep what each one took', () => {
    const { state, task } = stateWith({ maxAttempts: 2 });
    const lost = attemptLost(moved(begun(state, task, 0), SessionState.RUNNING, 2_500, {}), away, 2, 3_000);
    expect(sessionOf(lost).attempts[0]?.times).to.include({ queueMs: 1_000n, runMs: 500n });
    const over = attemptLost(dispatched(lost, { nodeId: 'n', bootId: 'b' }, 4_000), away, 2, 5_000);
    expect(sessionOf(over).outcome).to.equal(Outcome.INFRASTRUCTURE_ERROR);
    const place = { nodeId: 'm', bootId: 'c' };
    const third = dispatched(retried(over, 'g1', 6_000), place, 7_000);
    const fourth = attemptLost(third, away, 2, 8_000);
    expect(sessionOf(fourth)).to.include({ state: SessionState.QUEUED, attempt: 3 });
    expect(Number(fourth.notBeforeMs)).to.equal(8_500);
    expect(sessionOf(attemptLost(dispatched(fourth, place, 9_000), away, 2, 9_500)).outcome).to.equal(
      Outcome.INFRASTRUCTURE_ERROR,
    );
  });

  it('survive a snapshot in the middle', () => {
    const { state, task } = done();
    set(state, { ...retried(state.session(task, 1), groupIdOf(1), 4_000), revision: 77n });
    const again = reread(state);
    const restored = again.tasks.get('t') as TaskState;
    expect(restored).to.include({ round: 1, announcedRounds: 1 });
    expect(again.liveSessions).to.equal(1);
    expect(again.revision).to.equal(77n);
    expect(taskView(restored)).to.deep.equal(taskView(task));
  });

  it('name their groups so that the round can be told', () => {
    expect([0, 7].map(groupIdOf).map(roundOf)).to.deep.equal([0, 7]);
    expect(roundOf('other')).to.equal(0);
  });
});

describe('run time of queues', () => {
  const ran = (state: State, task: TaskState, i: number, runMs: number): void => {
    const started = moved(begun(state, task, i), SessionState.RUNNING, 10_000, {});
    set(state, started);
    set(state, moved(started, SessionState.FINISHING, 10_000 + runMs, {}));
  };

  it('adds up from commits, is in a snapshot, and is not counted twice', () => {
    const { state, task } = stateWith({ queue: 'q' });
    ran(state, task, 0, 1_500);
    ran(state, task, 1, 500);
    const lost = moved(begun(state, task, 2), SessionState.RUNNING, 10_000, {});
    set(state, lost);
    set(state, attemptLost(lost, away, 3, 10_250));
    expect(state.usage.of('q')).to.deep.equal({ runMs: 2_250, runs: 3 });
    const again = reread(reread(state));
    expect([...again.usage.all]).to.deep.equal([['q', { runMs: 2_250, runs: 3 }]]);
    ran(again, again.tasks.get('t') as TaskState, 2, 750);
    expect(again.usage.of('q')).to.deep.equal({ runMs: 3_000, runs: 4 });
  });

  it('counts no attempt that never ran, and is kept for the named queues and so many others', () => {
    const { state, task } = stateWith();
    set(state, attemptLost(begun(state, task, 0), away, 3, 9_000));
    expect([...state.usage.all]).to.deep.equal([]);
    state.usage.keep(['named']);
    for (const queue of ['named', 'q-0']) state.usage.ran(queue, 10);
    for (let i = 1; i <= QUEUES_REMEMBERED_MAX; i++) state.usage.ran(`q-${i}`, 10);
    const again = reread(state);
    again.usage.keep(['named']);
    for (const { usage } of [state, again]) {
      expect(usage.of('q-0')).to.deep.equal({ runMs: 0, runs: 0 });
      for (const queue of ['named', 'q-1']) expect(usage.of(queue)).to.deep.equal({ runMs: 10, runs: 1 });
    }
  });
});

describe('early stop', () => {
  const earlyStop = { minUsableSessions: 2, grace: durationFromMs(500) };

  it('comes when enough sessions are usable, and the grace is over', () => {
    const { state, task } = stateWith({ earlyStop }, 5);
    end(state, task, 0, Outcome.COMPLETED, 3_000);
    end(state, task, 1, Outcome.COMPLETED, 4_000, 0n);
    end(state, task, 2, Outcome.TIMEOUT, 5_000);
    expect(stopAtMs(task)).to.equal(undefined);
    end(state, task, 3, Outcome.COMPLETED, 6_000);
    expect(stopAtMs(task)).to.equal(6_500);
    expect(stopAtMs(reread(state).tasks.get('t') as TaskState)).to.equal(6_500);
  });

  it('is for the first round, and for tasks that ask for it', () => {
    const { state, task } = stateWith({ earlyStop: { minUsableSessions: 1 } }, 2);
    end(state, task, 0, Outcome.COMPLETED, 3_000);
    expect(stopAtMs(task)).to.equal(3_000);
    expect(stopAtMs({ ...task, announcedRounds: 1 })).to.equal(undefined);
    const other = stateWith();
    end(other.state, other.task, 0, Outcome.COMPLETED);
    expect(stopAtMs(other.task)).to.equal(undefined);
  });
});

describe('clocks of waiting', () => {
  it('run in QUEUED and READY where the spec limits them, and in no stage', () => {
    const budgets = { queue: durationFromMs(500), ready: durationFromMs(700), run: durationFromMs(900) };
    const { state, task } = stateWith({ budgets });
    const queued = state.session(task, 0);
    expect(clocksOf(queued, task.spec)).to.deep.equal(['queue']);
    const preparing = begun(state, task, 0);
    expect(clocksOf(preparing, task.spec)).to.deep.equal(['prepare']);
    const ready = moved(preparing, SessionState.READY, 3_000, {});
    expect(clocksOf(ready, task.spec)).to.deep.equal(['ready']);
    expect(clocksOf(moved(ready, SessionState.RUNNING, 4_000, {}), task.spec)).to.deep.equal(['run']);
  });

  it('do not run for a task of before there were any', () => {
    const { state, task } = stateWith();
    expect(clocksOf(state.session(task, 0), task.spec)).to.deep.equal([]);
    expect(clocksOf(moved(begun(state, task, 0), SessionState.READY, 3_000, {}), task.spec)).to.deep.equal(
      [],
    );
  });
});

describe('what operators ask for', () => {
  it('is in the state, and in a snapshot of it', () => {
    const { state } = stateWith();
    state.apply(drainChange('a', true));
    state.apply(drainChange('b', true));
    state.apply(drainChange('b', false));
    state.apply(tombstoneChange('later', 5_000));
    for (const one of [state, reread(state)]) {
      expect([one.isDraining('a'), one.isDraining('b')]).to.deep.equal([true, false]);
      expect([one.isCancelledAhead('later', 4_999), one.isCancelledAhead('later', 5_000)]).to.deep.equal([
        true,
        false,
      ]);
      expect(one.isCancelledAhead('other', 0)).to.equal(false);
    }
  });

  it('does not grow for ever', () => {
    const { state } = stateWith();
    for (let i = 0; i <= TOMBSTONES_MAX; i++) state.apply(tombstoneChange(`t${i}`, 5_000));
    expect(state.isCancelledAhead('t0', 0)).to.equal(false);
    expect(state.isCancelledAhead('t1', 0)).to.equal(true);
  });
});

describe('callbacks', () => {
  it('keep a task unsettled until they are delivered or given up, through a snapshot', () => {
    const { state, task } = stateWith({ callbackUrl: 'http://h/' }, 1);
    end(state, task, 0, Outcome.COMPLETED);
    expect(isSettled(task)).to.equal(false);
    state.apply(announcedChange(task));
    expect(isSettled(task)).to.equal(false);
    expect(isSettled(reread(state).tasks.get('t') as TaskState)).to.equal(false);
    state.apply(callbackChange({ ...task, round: 3 }, true));
    expect(isSettled(task)).to.equal(false);
    state.apply(callbackChange(task, false));
    expect(isSettled(task)).to.equal(true);
    expect(reread(state).tasks.get('t')?.callback).to.equal('given-up');
  });

  it('are owed as they were announced when sessions go again before, through a snapshot', () => {
    const { state, task } = stateWith({ callbackUrl: 'http://h/' }, 1);
    end(state, task, 0, Outcome.INFRASTRUCTURE_ERROR);
    const body = callbackBody(task);
    state.apply(announcedChange(task));
    set(state, retried(state.session(task, 0), groupIdOf(1), 4_000));
    for (const one of [state, reread(state)]) {
      const again = one.tasks.get('t') as TaskState;
      expect([...again.owed]).to.deep.equal([['g0', body]]);
      end(one, again, 0, Outcome.COMPLETED);
      one.apply(announcedChange(again));
      one.apply(callbackChange(again, true));
      expect(isSettled(again)).to.equal(false);
      one.apply(callbackChange({ ...again, round: 0 }, false));
      expect(isSettled(again)).to.equal(true);
      expect(again.callback).to.equal('delivered');
    }
  });

  it('tell the sessions of the group, without what is large', () => {
    const { state, task } = stateWith({ callbackUrl: 'http://h/' }, 2);
    end(state, task, 0, Outcome.COMPLETED);
    end(state, task, 1, Outcome.INFRASTRUCTURE_ERROR);
    const { sessions, ...rest } = JSON.parse(callbackBody(task));
    expect(rest).to.deep.equal({
      ...{ id: 't:g0', type: 'task.ended', task_id: 't', group_id: 'g0' },
      end_time: '1970-01-01T00:00:03.000Z',
      sessions_by_outcome: { completed: 1, infrastructure_error: 1 },
      ...{ mean_reward: 1, num_sessions: 2 },
    });
    expect(sessions).to.deep.equal([
      { session_id: 's-0', sample_index: 0, outcome: 'completed', reward: 1, attempt: 1 },
      {
        ...{ session_id: 's-1', sample_index: 1, outcome: 'infrastructure_error' },
        ...{ reason: 'SANDBOX_FAILED', attempt: 1 },
      },
    ]);
  });

  it('of a retry tell the outcomes and rewards of those that went again, not of the whole task', () => {
    const { state, task } = stateWith({ callbackUrl: 'http://h/' }, 3);
    for (const i of [0, 1]) end(state, task, i, Outcome.COMPLETED);
    end(state, task, 2, Outcome.INFRASTRUCTURE_ERROR);
    state.apply(announcedChange(task));
    set(state, retried(state.session(task, 2), groupIdOf(1), 4_000));
    end(state, task, 2, Outcome.INFRASTRUCTURE_ERROR);
    const told = JSON.parse(callbackBody(task));
    expect(told).to.include({ group_id: 'g1', num_sessions: 1 });
    expect(told.sessions_by_outcome).to.deep.equal({ infrastructure_error: 1 });
    expect(told).to.not.have.property('mean_reward');
  });
});
