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
});
export type TestOnOutputConfig = z.output<typeof testOnOutputConfig>;

export const evaluatorConfigs = {
  session_completed: z.strictObject({}),
  test_on_output: testOnOutputConfig,
} satisfies Record<EvaluatorName, z.ZodType>;

export const builderConfigs = {
  per_request: z.strictObject({}),
  prefix_merging: z.strictObject({}),
} satisfies Record<BuilderName, z.ZodType>;

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
