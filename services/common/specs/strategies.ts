// Configuration of every builder and evaluator, checked at submit and read again where it is used.
import { z } from 'zod';
import type { BuilderName, EvaluatorName } from './catalogue.ts';

const seconds = z.number().positive().max(86_400);

/** Tests run on the patch in a fresh sandbox. Names and defaults of the reference system. */
export const testOnOutputConfig = z.strictObject({
  test_command: z.string().min(1),
  /** Test name to PASSED, FAILED, ERROR or SKIPPED; an object, or its JSON text. */
  expected_output_json: z.union([
    z.record(z.string(), z.string()),
    z.string().transform((text, ctx) => {
      const parsed = z.record(z.string(), z.string()).safeParse(jsonOf(text));
      if (parsed.success) return parsed.data;
      ctx.addIssue({ code: 'custom', message: 'must be a JSON object of test names to results' });
      return z.NEVER;
    }),
  ]),
  repo_dir: z.string().startsWith('/').default('/testbed'),
  /** Default: all changes of repo_dir, new files too, since its commit at the end of `prepare`. */
  patch_command: z.string().min(1).optional(),
  apply_timeout: seconds.default(60),
  test_timeout: seconds.default(1200),
  /** Globs of files that do not count. */
  exclude_patterns: z.array(z.string()).default([]),
  /** Prints rewards of single traces, after the tests. Absent: every trace has the session's. */
  rewards_command: z.string().min(1).optional(),
  rewards_timeout: seconds.default(60),
});
export type TestOnOutputConfig = z.output<typeof testOnOutputConfig>;

export const evaluatorConfigs = {
  session_completed: z.strictObject({}),
  test_on_output: testOnOutputConfig,
} satisfies Record<EvaluatorName, z.ZodType>;

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

/** The path of a module below a folder of plug-ins. */
export const PLUGIN_PATH = /^(?!.*(?:^|\/)\.\.?(?:\/|$))[\w./-]+\.(?:js|mjs|ts)$/;

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
