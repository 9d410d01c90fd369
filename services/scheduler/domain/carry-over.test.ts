// Stragglers that leave their group: each is in one group, and comes once, whatever is killed between.
import { expect } from 'chai';
import { Stragglers } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { begun, end, reread, set, stateWith } from '../../../test/support/scheduler-state.ts';
import { stopAtMs } from './early-stop.ts';
import { groupReady } from './group.ts';
import { endedRound } from './rounds.ts';
import { carriedOver, groupIdOf, Outcome, SessionState, sessionOf } from './session.ts';
import { announcedGroup, callbackOfGroup, isSettled, type State, type TaskState } from './state.ts';

describe('stragglers that are carried over', () => {
  const spec = {
    callbackUrl: 'http://h/',
    earlyStop: { minUsableSessions: 1, stragglers: Stragglers.CARRY_OVER },
  };
  /** Of four sessions one has ended, one waits and two run; all that have not ended have left the first group. */
  const left = (): { state: State; task: TaskState } => {
    const { state, task } = stateWith(spec, 4);
    end(state, task, 0, Outcome.COMPLETED);
    for (const i of [2, 3]) set(state, begun(state, task, i));
    for (const i of [1, 2, 3]) {
      expect(endedRound(task), `with ${i} to go`).to.equal(undefined);
      set(state, carriedOver(state.session(task, i), groupIdOf(1)));
    }
    return { state, task };
  };
  const samplesOf = (task: TaskState, round: number): number[] =>
    groupReady(task, 0, round).sessions.map(({ sampleIndex }) => sampleIndex);

  it('leave a first group that is whole without them, and are the next one', () => {
    const { state, task } = left();
    expect(stopAtMs(task), 'until it is announced, be it after a kill between two commits').to.equal(3_000);
    for (const one of [state, reread(state)]) {
      const again = one.tasks.get('t') as TaskState;
      expect(endedRound(again)).to.equal(0);
      expect(samplesOf(again, 0)).to.deep.equal([0]);
      expect(groupReady(again, 0, 0).carriedOverSessions).to.equal(3);
      one.apply(announcedGroup('t', 'g0'));
      expect(again).to.include({ round: 1, announcedRounds: 1 });
      expect(stopAtMs(again)).to.equal(undefined);
      expect(JSON.parse(again.owed.get('g0') ?? '')).to.include({
        num_sessions: 1,
        carried_over_sessions: 3,
      });
      expect(endedRound(again)).to.equal(undefined);
      for (const i of [3, 1, 2]) end(one, again, i, Outcome.COMPLETED, 5_000);
      expect(endedRound(again)).to.equal(1);
      expect(samplesOf(again, 1)).to.deep.equal([1, 2, 3]);
      expect(groupReady(again, 0, 1).carriedOverSessions).to.equal(0);
      expect(isSettled(again)).to.equal(false);
      one.apply(announcedGroup('t', 'g1'));
      for (const groupId of ['g0', 'g1']) one.apply(callbackOfGroup('t', groupId, true));
      expect(isSettled(again)).to.equal(true);
      expect(again.callback).to.equal('delivered');
    }
  });

  it('keep what their own announcement needs when the first group is announced', () => {
    const { state, task } = left();
    end(state, task, 2, Outcome.COMPLETED);
    state.apply(announcedGroup('t', 'g0'));
    expect(task.sessions.map((record) => record?.evaluated !== undefined)).to.deep.equal([
      false,
      false,
      true,
      false,
    ]);
  });

  it('are where they were after a snapshot between the two announcements, and nothing is told twice', () => {
    const { state, task } = left();
    state.apply(announcedGroup('t', 'g0'));
    const owed = task.owed.get('g0');
    const before = reread(state).tasks.get('t') as TaskState;
    expect(before).to.include({ round: 1, announcedRounds: 1 });
    expect([...before.owed]).to.deep.equal([['g0', owed]]);
    state.apply(callbackOfGroup('t', 'g0', true));
    const after = reread(state).tasks.get('t') as TaskState;
    expect(after).to.include({ round: 1, announcedRounds: 1 });
    expect([...after.owed]).to.deep.equal([]);
    expect(sessionOf(reread(state).session(after, 3))).to.include({
      ...{ groupId: 'g1', state: SessionState.PREPARING, attempt: 1 },
    });
  });

  it('may have ended before the first group is announced: then that one comes first', () => {
    const { state, task } = left();
    for (const i of [1, 2, 3]) end(state, task, i, Outcome.COMPLETED);
    expect(endedRound(task)).to.equal(0);
    state.apply(announcedGroup('t', 'g0'));
    expect(endedRound(task)).to.equal(1);
    expect(samplesOf(task, 1)).to.deep.equal([1, 2, 3]);
  });
});
