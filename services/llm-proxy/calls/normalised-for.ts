// The messages of a request as the rules of the node leave them, for the engines that they go to.
import type { Attempt } from '../attempts/attempt.ts';
import type { LlmProxyContext } from '../context.ts';
import type { JsonObject } from '../domain/json.ts';
import { asUsers, saysLate } from '../domain/late-system.ts';
import { LATE_SYSTEM, type Normalised, normalised } from '../domain/normalise.ts';
import type { Notes } from '../domain/notes.ts';
import type { Pool } from '../engines/pool.ts';
import { askSystemFirst, takesSystemFirstOnly } from '../engines/system-first.ts';

/** Resolves when all is known that the rules go by, or soon; undefined: nothing is to be waited for. */
export function untilKnown(
  { config, stopping }: LlmProxyContext,
  pool: Pool,
  given: readonly JsonObject[],
  notes?: Notes,
): Promise<void> | undefined {
  const isOpen = config.node.normalise.includes(LATE_SYSTEM) && takesSystemFirstOnly(pool) === undefined;
  return isOpen && saysLate(given, notes) ? askSystemFirst(pool, stopping) : undefined;
}

export function normalisedFor(
  { config }: LlmProxyContext,
  { rules }: Attempt,
  pool: Pool,
  given: readonly JsonObject[],
  notes?: Notes,
): Normalised {
  const { normalise } = config.node;
  const done = normalised(given, normalise, rules, notes);
  const { messages, by } = done;
  const late =
    normalise.includes(LATE_SYSTEM) && takesSystemFirstOnly(pool) === true && saysLate(messages, notes);
  return late ? { messages: asUsers(messages), by: [...by, LATE_SYSTEM] } : done;
}
