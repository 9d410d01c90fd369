// Names of frozen model pools, which tasks allow and harnesses ask for.
import { z } from 'zod';
import { MODEL_POOLS_PER_TASK_MAX } from '../limits.ts';

/** What every alias begins with; the policy's name does not. */
export const POOL_PREFIX = 'pool/';
const ALIAS = /^pool\/[^\s/][^\s]{0,122}$/;

export const poolAliasSchema = z.string().regex(ALIAS, 'must be pool/ and a name without spaces');

/** What is wrong with the aliases that a task allows; undefined: nothing. */
export function poolsFault(aliases: readonly string[]): string | undefined {
  if (aliases.length > MODEL_POOLS_PER_TASK_MAX) return `must be at most ${MODEL_POOLS_PER_TASK_MAX}`;
  if (new Set(aliases).size < aliases.length) return 'must be there once each';
  return aliases.every((alias) => ALIAS.test(alias)) ? undefined : 'must be pool/ and a name without spaces';
}
