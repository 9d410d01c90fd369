// What evaluators that grade an agent's changes have in common, and how values may be written.
import { z } from 'zod';
import { anyArgument, argument } from './faults-of.ts';

export const seconds = z.number().positive().max(86_400);

/** Names and defaults of the reference system. */
export const patchOptions = {
  repo_dir: anyArgument.startsWith('/').default('/testbed'),
  /** Default: all changes of repo_dir, new files too, since its commit at the end of `prepare`. */
  patch_command: argument.optional(),
  apply_timeout: seconds.default(60),
  test_timeout: seconds.default(1200),
  /** Globs of files that do not count. */
  exclude_patterns: z.array(anyArgument).default([]),
};
const all = z.object(patchOptions);
export type PatchOptions = z.output<typeof all>;

/** A value, or its JSON text. */
export const orJsonText = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((given) => (typeof given === 'string' ? jsonOf(given) : given), schema);

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
