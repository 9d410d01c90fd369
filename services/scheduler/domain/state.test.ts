import { create, equals, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type TaskSpec, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type Change, CommitSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { BuiltSchema, EvaluatedSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { completeTaskSpec } from '../../common/specs/task-spec.ts';
import { dispatched, ended, Outcome, queuedSession, SessionState, sessionOf } from './session.ts';
import {
  allEnded,
  announcedChange,
  announcedGroup,
  archivedChange,
  callbackChange,
  State,
  sessionChange,
  type TaskState,
  taskChange,
} from './state.ts';
import { specDigest, taskRecord } from './task.ts';
import { taskView } from './view.ts';

const specOf = (taskId: string, numSamples = 2): TaskSpec =>
  create(TaskSpecSchema, { taskId, numSamples, harness: { name: 'shell' } });

function submit(taskId: string, over: Partial<TaskSpec> = {}): Change {
  const spec = { ...specOf(taskId), ...over };
  const init = {
    filesRef: undefined,
    specSha256: specDigest(spec),
    requestId: `r-${taskId}`,
    createMs: 1_000,
  };
  const value = taskRecord({ spec, sessionPrefix: `s-${taskId}`, ...init });
  return taskChange(value);
}

function stateWith(...taskIds: string[]): State {
  const state = new State();
  for (const taskId of taskIds) state.apply(submit(taskId));
  return state;
}
const get = (state: State, taskId: string): TaskState => state.tasks.get(taskId) as TaskState;

function finish(state: State, taskId: string): void {
  const task = get(state, taskId);
  for (let i = 0; i < task.record.numSamples; i++) {
    const begun = dispatched(state.session(task, i), { nodeId: 'n', bootId: 'b' }, 2_000);
    const graded = {
      ...begun,
      evaluated: create(EvaluatedSchema, { reward: i }),
      built: create(BuiltSchema, { policyVersionMin: 1n }),
    };
    state.apply(sessionChange(ended(graded, Outcome.COMPLETED, 3_000)));
  }
  state.apply(announcedChange(get(state, taskId)));
}

describe('state', () => {
  it("has a task's sessions from the task alone", () => {
    const state = stateWith('a');
    expect(state.liveSessions).to.equal(2);
    const found = state.find('s-a-1');
    expect(found?.sampleIndex).to.equal(1);
    expect(sessionOf(state.session(found!.task, 1))).to.include({
      sessionId: 's-a-1',
      state: SessionState.QUEUED,
    });
    for (const none of ['s-a-2', 's-a-', 's-a-01', 's-b-0', '', 's-a-0x', 's-a--1']) {
      expect(state.find(none), none).to.equal(undefined);
    }
  });

  it('counts by state and outcome, and the mean over those with a reward', () => {
    const state = stateWith('a', 'b');
    finish(state, 'a');
    const view = taskView(get(state, 'a'));
    expect(view.sessionsByState).to.deep.equal({ ended: 2 });
    expect(view.sessionsByOutcome).to.deep.equal({ completed: 2 });
    expect(view.meanReward).to.equal(0.5);
    expect(allEnded(get(state, 'a'))).to.equal(true);
    expect(taskView(get(state, 'b')).meanReward).to.equal(undefined);
    expect(state.liveSessions).to.equal(2);
  });

  it('takes a task and its announcement once', () => {
    const state = stateWith('a', 'a');
    expect(state.tasks.size).to.equal(1);
    expect(state.liveSessions).to.equal(2);
    finish(state, 'a');
    state.apply(announcedChange(get(state, 'a')));
    state.apply(announcedGroup('b', 'g0'));
    expect(state.liveSessions).to.equal(0);
  });

  it('comes back from its own changes, to the byte', () => {
    const state = stateWith('a', 'b', 'c');
    finish(state, 'b');
    finish(state, 'a');
    const c = get(state, 'c');
    state.apply(sessionChange(dispatched(state.session(c, 1), { nodeId: 'n', bootId: 'b' }, 5_000)));
    const bytes = toBinary(CommitSchema, create(CommitSchema, { changes: [...state.changes()] }));
    const again = new State();
    for (const change of fromBinary(CommitSchema, bytes).changes) again.apply(change);
    const commit = create(CommitSchema, { changes: [...again.changes()] });
    expect(equals(CommitSchema, fromBinary(CommitSchema, bytes), commit)).to.equal(true);
    expect(again.liveSessions).to.equal(state.liveSessions);
    expect(again.activityMs).to.equal(state.activityMs);
    expect(taskView(get(again, 'a'))).to.deep.equal(taskView(get(state, 'a')));
  });

  it('lets go of what only the announcement needed', () => {
    const state = stateWith('a');
    finish(state, 'a');
    const record = state.session(get(state, 'a'), 1);
    expect(record.built).to.equal(undefined);
    expect(record.evaluated).to.equal(undefined);
    expect(sessionOf(record).reward).to.equal(1);
  });

  it('lets go of a task that is in the archive', () => {
    const state = stateWith('a', 'b');
    finish(state, 'a');
    const both = state.specsBytes;
    expect(state.sessions).to.equal(4);
    state.apply(archivedChange(get(state, 'a')));
    expect([...state.tasks.keys()]).to.deep.equal(['b']);
    expect(state.byRequest('r-a')).to.equal(undefined);
    expect(state.find('s-a-0')).to.equal(undefined);
    expect(state.sessions).to.equal(2);
    expect(state.specsBytes).to.equal(both / 2);
  });

  it('counts no session of a torn task any more that it lets go of', () => {
    const [whole, state] = [stateWith('a'), stateWith('a', 'b')];
    finish(whole, 'a');
    // A kill came before the last session of a task that was coming back.
    state.apply(sessionChange(whole.session(get(whole, 'a'), 0)));
    state.apply(announcedChange(get(state, 'a')));
    expect(state.liveSessions).to.equal(3);
    state.apply(archivedChange(get(state, 'a')));
    expect(state.liveSessions).to.equal(2);
  });

  it('keeps a task that is not settled, or whose sessions have gone again', () => {
    const state = stateWith('a');
    state.apply(submit('told', { callbackUrl: 'http://receiver' }));
    state.apply(archivedChange(get(state, 'a')));
    finish(state, 'told');
    state.apply(archivedChange(get(state, 'told')));
    expect([...state.tasks.keys()]).to.deep.equal(['a', 'told']);
    state.apply(archivedChange({ ...get(state, 'told'), round: 1 }));
    state.apply(callbackChange(get(state, 'told'), true));
    state.apply(archivedChange({ ...get(state, 'told'), round: 1 }));
    expect([...state.tasks.keys()]).to.deep.equal(['a', 'told']);
    state.apply(archivedChange(get(state, 'told')));
    expect([...state.tasks.keys()]).to.deep.equal(['a']);
  });

  it('knows the highest revision when its session is in the archive', () => {
    const state = stateWith('a', 'b');
    finish(state, 'a');
    const last = { ...state.session(get(state, 'a'), 0), revision: 7n };
    state.apply(sessionChange(last));
    state.apply(archivedChange(get(state, 'a')));
    const again = new State();
    for (const change of state.changes()) again.apply(change);
    expect(again.revision).to.equal(7n);
  });

  it('gives tasks the same order behind a snapshot, be those before them in the archive', () => {
    const state = stateWith('a', 'b', 'c', 'd');
    for (const id of ['a', 'c', 'd']) {
      finish(state, id);
      state.apply(archivedChange(get(state, id)));
    }
    const again = new State();
    for (const change of state.changes()) again.apply(change);
    for (const one of [state, again]) {
      one.apply(taskChange(get(stateWith('e'), 'e').record));
      expect([...one.tasks.values()].map(({ order }) => order)).to.deep.equal([1, 4]);
    }
  });

  it('keeps an implied session as the task implies it', () => {
    const state = stateWith('a');
    const task = get(state, 'a');
    expect(state.session(task, 0)).to.deep.equal(queuedSession(task.record, task.spec, 0));
    expect([...state.changes()].map(({ kind }) => kind.case)).to.deep.equal(['revisionReached', 'task']);
  });
});

describe('spec digest', () => {
  const base = (over: object = {}): TaskSpec =>
    create(TaskSpecSchema, {
      taskId: 't',
      runtime: { env: { A: '1', B: '2' }, prepare: [dir('/a', 'x'), dir('/b')] },
      metadata: { k: { y: 1, x: [1, 2] } },
      ...over,
    });
  const dir = (target: string, ...files: string[]) => ({
    step: {
      case: 'uploadDir' as const,
      value: { target, files: files.map((name) => ({ target: name, content: Buffer.from(name) })) },
    },
  });

  it('does not depend on the order of maps', () => {
    const other = base({
      runtime: { env: { B: '2', A: '1' }, prepare: [dir('/a', 'x'), dir('/b')] },
      metadata: { k: { x: [1, 2], y: 1 } },
    });
    expect(specDigest(other)).to.equal(specDigest(base()));
  });

  it('depends on everything else', () => {
    const others = [
      base({ instruction: 'x' }),
      base({ metadata: { k: { x: [2, 1], y: 1 } } }),
      base({ runtime: { env: { A: '1', B: '2' }, prepare: [dir('/a'), dir('/b', 'x')] } }),
      base({ runtime: { env: { A: '1', B: '2' }, prepare: [dir('/a', 'y'), dir('/b')] } }),
      base({ numSamples: 3 }),
      base({ evaluator: { strategy: 'harbor' } }),
      base({ evaluator: { strategy: 'harbor', files: [{ target: 'a', content: Buffer.from('b') }] } }),
      base({ evaluator: { strategy: 'harbor', files: [{ target: 'a', content: Buffer.from('c') }] } }),
    ];
    const digests = new Set([base(), ...others].map(specDigest));
    expect(digests.size).to.equal(others.length + 1);
  });

  it('is that of tasks that were stored when all grading had 300 s by default', () => {
    const config = { test_command: 'true', expected_output_json: { a: 'PASSED' } };
    const digest = (over: object = {}): string => {
      const evaluator = { strategy: 'test_on_output', config };
      const given = { taskId: 't', harness: { name: 'shell' }, evaluator, ...over };
      return specDigest(completeTaskSpec(create(TaskSpecSchema, given)));
    };
    const evaluate = (seconds: number) => ({ budgets: { evaluate: { seconds: BigInt(seconds) } } });
    // As they were stored then.
    expect(digest()).to.equal('8e4d79d8f93bc20332a14308f82bc51c3299ed99e6d5cfeb6aa2b1d0cad6bcae');
    expect(digest(evaluate(1))).to.equal('0fbaee26bc3cd524c5ad5696e2550d099d80b63229f312e253cdecba1f2d5ac5');
    expect(digest({ evaluator: undefined })).to.equal(
      'a71bd1839b65a04a0221d1058191cb03ce11b83939fc954681d78cd4cdda7e06',
    );
    // A completed spec is the same task.
    expect(digest(evaluate(1740))).to.equal(digest());
    expect(digest(evaluate(1741))).not.to.equal(digest());
  });
});
