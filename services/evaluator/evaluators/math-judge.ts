// The answer that the agent gives in its last reply, compared with the one that the task has.
import { checkStrict } from '../../common/config/faults.ts';
import { type MathJudgeConfig, mathJudgeConfig } from '../../common/specs/reply-evaluators.ts';
import { answerIn, isRight } from '../domain/math-answer.ts';
import { finalOf, repliesOf } from '../domain/replies.ts';
import { recordsOf } from './call-records.ts';
import type { Evaluation, Evaluator } from './evaluator.ts';

/** Of an answer. */
const TOLD_CHARS = 1_000;

export const mathJudge: Evaluator = {
  name: 'math_judge',
  summary: 'Compares the answer of the last reply with the right one: 1.0 if they are the same, else 0.0.',
  async evaluate(ctx, evaluation, signal) {
    const { answer, format_bonus } = configOf(evaluation);
    const reply = finalOf(repliesOf(await recordsOf(ctx, evaluation, signal)));
    const given = answerIn(reply?.text ?? '');
    const isResolved = isRight(given, answer);
    const isMarked = given.form === 'answer' || given.form === 'boxed';
    return {
      reward: (isResolved ? 1 : 0) + (isMarked ? format_bonus : 0),
      evaluation: {
        resolved: isResolved,
        answer: given.text.slice(0, TOLD_CHARS).toWellFormed(),
        answer_form: given.form,
        call_id: reply?.callId ?? null,
      },
    };
  },
};

const configOf = ({ work }: Evaluation): MathJudgeConfig =>
  checkStrict(mathJudgeConfig, work.evaluator?.config ?? {}, 'evaluator.config', 'INVALID_TASK');
