// Configuration of every builder and evaluator, checked at submit and read again where it is used.
import { z } from 'zod';
import type { EvaluatorSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type BuilderName, type EvaluatorName, TEST_FORMATS } from './catalogue.ts';
import { argument } from './faults-of.ts';
import { orJsonText, patchOptions, seconds } from './grading-options.ts';
import { harborConfig, harborSeconds, resultFileConfig, resultFileSeconds } from './live-grading.ts';
import { mathJudgeConfig, responseMatchConfig } from './reply-evaluators.ts';
import { swebenchHarnessConfig } from './swebench-harness.ts';
import { contradictions } from './test-names.ts';

/** The path of a module below a folder of plug-ins. */
export const PLUGIN_PATH = /^(?!.*(?:^|\/)\.\.?(?:\/|$))[\w./-]+\.(?:js|mjs|ts)$/;

/** With other results, or none, no session could ever be right. */
const expectedResults = z
  .record(z.string(), z.enum(['PASSED', 'FAILED', 'ERROR', 'SKIPPED']), {
    error: ({ code }) =>
      code === 'invalid_type'
        ? 'must be an object of test names to results, or the JSON text of one'
        : undefined,
  })
  .refine((results) => Object.keys(results).length > 0, 'must name a test');

const testOnOutput = z.strictObject({
  test_command: argument,
  /** What it prints. */
  test_format: z.enum(TEST_FORMATS).default('pytest'),
  /** Test name to result; an object, or its JSON text. */
  expected_output_json: orJsonText(expectedResults),
  /** Results of tests that are not in it. */
  unlisted_tests: z.enum(['count', 'ignore']).default('count'),
  ...patchOptions,
  /** Prints the session's reward, rewards of single traces or both, after the tests. */
  rewards_command: argument.optional(),
  rewards_timeout: seconds.default(60),
});

const namesAgree: z.core.CheckFn<Pick<TestOnOutput, 'test_format' | 'expected_output_json'>> = ({
  value,
  issues,
}) => {
  if (value.test_format !== 'pytest') return;
  for (const [name, other] of contradictions(value.expected_output_json)) {
    const message = `is one test with ${other}, as files and outer classes do not count, and their results differ`;
    issues.push({ code: 'custom', path: ['expected_output_json', name], message, input: value });
  }
};
type TestOnOutput = z.output<typeof testOnOutput>;

/** Tests run on the patch in a fresh sandbox. Names and defaults of the reference system. */
export const testOnOutputConfig = testOnOutput.check(namesAgree);
export type TestOnOutputConfig = z.output<typeof testOnOutputConfig>;

/** fetch gives up a reply whose head is not there after 300 s, whatever it is told. */
const JUDGE_SECONDS_MAX = 290;

/** Longest rubric, and most that a judge is shown of one conversation. */
const SECTION_CHARS_MAX = 200_000;

/** An evaluator of the operator's plug-ins; `options` are its own. */
export const evaluatorPluginConfig = z.strictObject({
  options: z.json().default({}),
  timeout: seconds.default(300),
});
export type EvaluatorPluginConfig = z.output<typeof evaluatorPluginConfig>;

/** What finds the outcome that a judge's scores are added to. */
const outcomeEvaluator = z.discriminatedUnion('strategy', [
  z.strictObject({ strategy: z.literal('session_completed'), config: z.strictObject({}).default({}) }),
  z.strictObject({
    strategy: z.literal('test_on_output'),
    // Rewards of traces are the rubric's here.
    config: testOnOutput.omit({ rewards_command: true, rewards_timeout: true }).check(namesAgree),
  }),
  z.strictObject({ strategy: z.literal('harbor'), config: harborConfig.prefault({}) }),
  z.strictObject({ strategy: z.literal('verifier_result_file'), config: resultFileConfig }),
  z.strictObject({ strategy: z.literal('swebench_harness'), config: swebenchHarnessConfig }),
  z.strictObject({ strategy: z.literal('math_judge'), config: mathJudgeConfig }),
  z.strictObject({ strategy: z.literal('response_match'), config: responseMatchConfig }),
]);

/** A judge model scores each conversation by a rubric. Names and defaults of the reference system's harbor_rubric. */
const rubricConfig = z.strictObject({
  outcome: outcomeEvaluator.default({ strategy: 'session_completed', config: {} }),
  rubric: z.string().trim().min(1).max(SECTION_CHARS_MAX),
  /** Of the topology's `evaluators.judges`. */
  judge: z.string().min(1),
  /** What the best score adds to a reward, and the worst takes from it. */
  rubric_coefficient: z.number().min(0).max(1000).default(0.2),
  /** Of one answer. */
  judge_timeout: seconds.max(JUDGE_SECONDS_MAX).default(60),
  /** Asked again where no answer comes, or one that is none. */
  judge_max_retries: z.int().min(0).max(10).default(2),
  judge_temperature: z.number().min(0).max(2).default(0),
  /** What of one conversation is shown; its middle is left out. */
  max_section_chars: z.int().min(1000).max(SECTION_CHARS_MAX).default(40_000),
});
/** The same where a plug-in finds the outcome. */
const rubricOverPlugin = rubricConfig.extend({
  outcome: z.strictObject({
    strategy: z.string().regex(PLUGIN_PATH),
    config: evaluatorPluginConfig.prefault({}),
  }),
});
export type RubricConfig = z.output<typeof rubricConfig | typeof rubricOverPlugin>;

/** Of a rubric no more than its outcome's name: all of it is checked at submit. */
const outcomeName = z.object({
  outcome: z.object({ strategy: z.string() }).default({ strategy: 'session_completed' }),
});

/** The strategy that finds a session's outcome: the evaluator's own, or the one that it names. */
export function outcomeStrategyOf(evaluator: Pick<EvaluatorSpec, 'strategy' | 'config'> | undefined): string {
  if (evaluator?.strategy !== 'rubric') return evaluator?.strategy ?? '';
  return outcomeName.safeParse(evaluator.config ?? {}).data?.outcome.strategy ?? '';
}

/** What a rubric's configuration has to be, by who finds its outcome. */
export const rubricSchemaOf = (
  config: EvaluatorSpec['config'],
): typeof rubricConfig | typeof rubricOverPlugin =>
  PLUGIN_PATH.test(outcomeStrategyOf({ strategy: 'rubric', config })) ? rubricOverPlugin : rubricConfig;

/** Undefined: there is no such evaluator. */
export function evaluatorSchemaOf({
  strategy,
  config,
}: Pick<EvaluatorSpec, 'strategy' | 'config'>): z.ZodType | undefined {
  if (PLUGIN_PATH.test(strategy)) return evaluatorPluginConfig;
  if (strategy === 'rubric') return rubricSchemaOf(config);
  return Object.hasOwn(evaluatorConfigs, strategy) ? evaluatorConfigs[strategy as EvaluatorName] : undefined;
}

const evaluatorConfigs = {
  session_completed: z.strictObject({}),
  test_on_output: testOnOutputConfig,
  rubric: rubricConfig,
  harbor: harborConfig,
  verifier_result_file: resultFileConfig,
  swebench_harness: swebenchHarnessConfig,
  math_judge: mathJudgeConfig,
  response_match: responseMatchConfig,
} satisfies Record<EvaluatorName, z.ZodType>;

interface Graded {
  readonly strategy: string;
  readonly config?: object | undefined;
}

/** Commands of one grading that `apply_timeout` is for: the base, the changes, these without the agent, the patch. */
const APPLY_COMMANDS = 4;
/** And those that put the tests of a row there: before the patch, to see that it can be done, and behind it. */
const TEST_PATCH_COMMANDS = 2;

/** Seconds that an evaluator's commands and its judge may take by what their configuration grants; 0 where it is faulty. */
export function grantedSeconds({ strategy, config }: Graded): number {
  if (strategy === 'test_on_output') {
    const { data } = testOnOutputConfig.safeParse(config);
    if (data === undefined) return 0;
    const rewards = data.rewards_command === undefined ? 0 : data.rewards_timeout;
    return APPLY_COMMANDS * data.apply_timeout + data.test_timeout + rewards;
  }
  if (PLUGIN_PATH.test(strategy)) return evaluatorPluginConfig.safeParse(config ?? {}).data?.timeout ?? 0;
  if (strategy === 'harbor') {
    const { data } = harborConfig.safeParse(config ?? {});
    return data === undefined ? 0 : harborSeconds(data);
  }
  if (strategy === 'verifier_result_file') {
    const { data } = resultFileConfig.safeParse(config ?? {});
    return data === undefined ? 0 : resultFileSeconds(data);
  }
  if (strategy === 'swebench_harness') {
    const { data } = swebenchHarnessConfig.safeParse(config);
    if (data === undefined) return 0;
    const ofTests = data.test_command === undefined ? 0 : TEST_PATCH_COMMANDS;
    return (APPLY_COMMANDS + ofTests) * data.apply_timeout + data.test_timeout;
  }
  const schema = strategy === 'rubric' ? rubricSchemaOf(config as EvaluatorSpec['config']) : undefined;
  const rubric = schema?.safeParse(config).data;
  if (rubric === undefined) return 0;
  return grantedSeconds(rubric.outcome) + (1 + rubric.judge_max_retries) * rubric.judge_timeout;
}

const maskOr = z.enum(['mask', 'train']);
const MAX_INT32 = 2 ** 31 - 1;
const REASONING_END_IDS_MAX = 32;

/** What a task may set of every builder: which sampled ids are trained, and how long a trace may be. */
const policies = {
  /** Calls beside the conversation, such as titles. */
  side_calls: maskOr.default('mask'),
  /** Calls of models that are not the policy. */
  frozen_models: maskOr.default('mask'),
  /** Replies that were never delivered whole: cancelled, broken off, failed. */
  interrupted: maskOr.default('mask'),
  /** Ids without a logprob of their own are never trained; `mask_call`: nor the others of their call. */
  missing_logprobs: z.enum(['mask_ids', 'mask_call']).default('mask_ids'),
  /** Replies that ended for length. */
  truncated: maskOr.default('train'),
  /** Replies whose tool calls cannot be read. */
  invalid_tool_calls: maskOr.default('train'),
  /** Calls that were asked again, and of which the other reply was gone on with. */
  retries: maskOr.default('train'),
  /** Turns that the conversation went back behind. */
  abandoned: maskOr.default('train'),
  /** Ids that end the model's reasoning: what a call sampled up to them is masked. Absent: it is trained. */
  reasoning_end_ids: z.array(z.int().min(0).max(MAX_INT32)).min(1).max(REASONING_END_IDS_MAX).optional(),
  /** Prompt and response together; what is above is cut at the end. */
  max_trace_tokens: z.int().min(1).max(MAX_INT32).optional(),
};

const ownPolicies = z.strictObject(policies);
export type BuilderPolicies = z.output<typeof ownPolicies>;
export const DEFAULT_POLICIES: BuilderPolicies = ownPolicies.parse({});

export const builderConfigs = {
  per_request: ownPolicies,
  prefix_merging: ownPolicies,
} satisfies Record<BuilderName, z.ZodType>;

/** A builder of the operator's plug-ins; `options` are its own. */
export const pluginConfig = z.strictObject({ ...policies, options: z.json().default({}) });
