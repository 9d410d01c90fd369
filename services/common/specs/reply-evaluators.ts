// Configuration of evaluators that look at what the agent has answered, and at no sandbox.
import { z } from 'zod';

/** Largest reward, above or below 0. */
const REWARD_MAX = 1_000_000;
const reward = z.number().min(-REWARD_MAX).max(REWARD_MAX);

/** Longer ones are not compared. */
const ANSWER_CHARS_MAX = 1000;
/** A number of more may be another one than was written: 1/3, or an integer above 2^53. */
const DIGITS_MAX = 15;
const digitsOf = (value: number): number =>
  String(value)
    .replace(/e.*/, '')
    .replaceAll(/[.-]|^[0.-]+|0+$/g, '').length;
const number = z
  .number()
  .refine(
    (value) => digitsOf(value) <= DIGITS_MAX,
    `must be a text, as it has more than ${DIGITS_MAX} digits`,
  );
const answer = z
  .union([z.string(), number], { error: 'must be a text or a number, or a list of them' })
  .transform(String)
  .refine((text) => text.length <= ANSWER_CHARS_MAX, `must be at most ${ANSWER_CHARS_MAX} characters`)
  .refine((text) => /[\p{L}\p{N}]/u.test(text), 'must hold a letter or a digit');

/** `format_bonus` is the reference system's; so is what counts as the answer of a reply. */
export const mathJudgeConfig = z.strictObject({
  /** The right answer, or all that are right. */
  answer: z.preprocess((given) => (Array.isArray(given) ? given : [given]), z.array(answer).min(1).max(100)),
  /** What a reply has, right or wrong, that says which part of it is the answer. */
  format_bonus: z.number().min(0).max(1).default(0),
});
export type MathJudgeConfig = z.output<typeof mathJudgeConfig>;

const pattern = z
  .string()
  .min(1)
  .max(1000)
  .superRefine((source, issues) => {
    try {
      new RegExp(source, PATTERN_FLAGS);
    } catch (error) {
      issues.addIssue({ code: 'custom', message: `is no regular expression: ${(error as Error).message}` });
    }
  });
/** Of every pattern. */
export const PATTERN_FLAGS = 'u';

/** `require_all`, `reward` and `miss_reward` are the reference system's. */
export const responseMatchConfig = z
  .strictObject({
    contains: z.array(z.string().min(1).max(10_000)).max(100).default([]),
    /** Regular expressions of JavaScript. */
    patterns: z.array(pattern).max(32).default([]),
    require_all: z.boolean().default(false),
    ignore_case: z.boolean().default(false),
    reward: reward.default(1),
    miss_reward: reward.default(0),
  })
  .refine(({ contains, patterns }) => contains.length + patterns.length > 0, {
    path: ['contains'],
    message: 'must hold a text, or patterns must hold one',
  });
export type ResponseMatchConfig = z.output<typeof responseMatchConfig>;
