import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome, SessionSchema, SessionState } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { EvaluatorSpecSchema, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type Graded, GradedSchema } from '../../../gen/ts/polar/event/v1/graded_pb.js';
import { reasonOf } from '../../../test/support/reason-of.ts';
import { PolarError } from '../../common/errors.ts';
import { checkEnded, outcomeOf, workAgain } from './work-again.ts';

const session = (more: { state?: SessionState; outcome?: Outcome } = {}) =>
  create(SessionSchema, {
    ...{ sessionId: 's-0', state: SessionState.ENDED, outcome: Outcome.COMPLETED, stats: { calls: 3 } },
    ...more,
  });
const tests = (test_timeout: number, more: object = {}) =>
  create(EvaluatorSpecSchema, {
    strategy: 'test_on_output',
    config: {
      test_command: 'x',
      expected_output_json: { a: 'PASSED' },
      apply_timeout: 10,
      test_timeout,
      ...more,
    },
  });
const spec = create(TaskSpecSchema, {
  ...{ taskId: 't', instruction: 'do it', evaluator: tests(100) },
  runtime: { image: 'i' },
  budgets: { prepare: durationFromMs(60_000), evaluate: durationFromMs(400_000) },
});

describe('the work of grading again', () => {
  it("is the task's, with its budget, as its run ended", () => {
    const work = workAgain(session(), spec, Outcome.TIMEOUT, undefined);
    expect(work).to.deep.include({ timeoutMs: 400_000n, outcome: Outcome.TIMEOUT, instruction: 'do it' });
    expect([work.runtime?.image, work.calls?.calls, work.runtimeId]).to.deep.equal(['i', 3, '']);
    expect(work.evaluator).to.deep.equal(spec.evaluator);
  });

  it('has the time that another evaluator grants itself, and no less than the task has', () => {
    const budget = (seconds: number) =>
      workAgain(session(), spec, Outcome.COMPLETED, tests(seconds)).timeoutMs;
    expect(budget(100)).to.equal(400_000n);
    expect(budget(1_000)).to.equal(BigInt((60 + 4 * 10 + 1_000) * 1_000));
  });

  it('is none for an evaluator that no task may have, with every fault, nor without one', () => {
    const faultsOf = (given: ReturnType<typeof tests> | undefined, of = spec): unknown => {
      try {
        return workAgain(session(), of, Outcome.COMPLETED, given);
      } catch (error) {
        if (!(error instanceof PolarError)) throw error;
        return [error.reason, ...error.fields.map(({ field }) => field)];
      }
    };
    expect(faultsOf(tests(0, { x: 1 }))).to.deep.equal([
      ...['INVALID_TASK', 'evaluator.config.test_timeout', 'evaluator.config.x'],
    ]);
    expect(faultsOf(create(EvaluatorSpecSchema, { strategy: 'none' }))).to.deep.equal([
      ...['INVALID_TASK', 'evaluator.strategy'],
    ]);
    const { evaluator: _, ...without } = spec;
    expect(faultsOf(undefined, create(TaskSpecSchema, without))).to.deep.equal(['INVALID_TASK', 'evaluator']);
  });
});

describe('a session that is graded again', () => {
  const ran = (outcome: Outcome) => async () => create(GradedSchema, { outcome });
  const never = (): Promise<never> => Promise.reject(new Error('its group is not asked for'));
  const found = (
    of: ReturnType<typeof session>,
    graded: () => Promise<Graded | undefined> = never,
  ): Promise<unknown> => outcomeOf(of, graded).catch(({ reason }) => reason);

  it('has ended', () => {
    expect(reasonOf(() => checkEnded(session()))).to.equal('none');
    expect(reasonOf(() => checkEnded(session({ state: SessionState.FINISHING })))).to.equal('NOT_ENDED');
  });

  it('is graded as its run ended', async () => {
    for (const outcome of [Outcome.COMPLETED, Outcome.TIMEOUT, Outcome.HARNESS_ERROR]) {
      expect(await found(session({ outcome }))).to.equal(outcome);
    }
    const failed = session({ outcome: Outcome.TASK_ERROR });
    expect(await found(failed, ran(Outcome.TIMEOUT))).to.equal(Outcome.TIMEOUT);
  });

  it('is not where no run is kept', async () => {
    for (const outcome of [Outcome.CANCELLED, Outcome.INFRASTRUCTURE_ERROR]) {
      expect(await found(session({ outcome }))).to.equal('NOTHING_TO_GRADE');
    }
    const failed = session({ outcome: Outcome.TASK_ERROR });
    expect(await found(failed, async () => undefined)).to.equal('NOTHING_TO_GRADE');
    expect(await found(failed, ran(Outcome.UNSPECIFIED))).to.equal('NOTHING_TO_GRADE');
    const { stats: _, ...unbuilt } = failed;
    expect(await found(create(SessionSchema, unbuilt))).to.equal('NOTHING_TO_GRADE');
  });
});
