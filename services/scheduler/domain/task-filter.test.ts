import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { TaskFilterSchema } from '../../../gen/ts/polar/scheduler/v1/task_filter_pb.js';
import { Outcome, SessionState } from './session.ts';
import { State, type TaskState, taskChange } from './state.ts';
import { taskRecord } from './task.ts';
import { firstOf, liveFiltered, shownFiltered, wantedBy } from './task-filter.ts';
import { taskView } from './view.ts';

function live(): TaskState {
  const state = new State();
  const spec = create(TaskSpecSchema, { taskId: 'Sum-1', numSamples: 2, harness: { name: 'pi' } });
  const rest = { filesRef: undefined, specSha256: 'x', requestId: 'r', createMs: 1_000 };
  state.apply(taskChange(taskRecord({ spec, sessionPrefix: 's', ...rest })));
  return state.tasks.get('Sum-1') as TaskState;
}

describe('a filter of tasks', () => {
  it('is the same for a task in memory and for its view', () => {
    const task = live();
    const cases: readonly (readonly [object, boolean])[] = [
      [{}, true],
      [{ nameContains: 'sum', harness: 'pi', state: SessionState.QUEUED }, true],
      [{ nameContains: 'sums' }, false],
      [{ harness: 'p' }, false],
      [{ state: SessionState.RUNNING }, false],
      [{ outcome: Outcome.COMPLETED }, false],
    ];
    for (const [filter, wanted] of cases) {
      const isWanted = wantedBy(create(TaskFilterSchema, filter));
      const both = [isWanted(liveFiltered(task)), isWanted(shownFiltered(taskView(task)))];
      expect(both, JSON.stringify(filter)).to.deep.equal([wanted, wanted]);
    }
  });

  it('looks at no task behind the last that is wanted', () => {
    const looked: number[] = [];
    const isOdd = (n: number): boolean => looked.push(n) > 0 && n % 2 === 1;
    expect(firstOf([1, 2, 3, 4, 5, 6], isOdd, 2)).to.deep.equal([1, 3]);
    expect(looked).to.deep.equal([1, 2, 3]);
    expect(firstOf([2, 4], isOdd, 2)).to.deep.equal([]);
  });
});
