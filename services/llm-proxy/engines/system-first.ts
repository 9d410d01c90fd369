// Whether the chat template of a pool's engines takes the first message alone for the system. Nobody says so but by
// refusing: they are asked, once, for the ids of a conversation that only such a template refuses.
import { asPolarError } from '../../common/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { asUsers } from '../domain/late-system.ts';
import type { Pool } from './pool.ts';
import { tokenize } from './tokenize.ts';

const CONVERSATION: readonly JsonObject[] = ['system', 'user', 'assistant', 'system', 'user'].map((role) => ({
  role,
  content: 'x',
}));

const known = new WeakMap<Pool, boolean>();
const asking = new WeakMap<Pool, Promise<void>>();

/** False where it is not known, or cannot be told. */
export const takesSystemFirstOnly = (pool: Pool): boolean => known.get(pool) ?? false;

/** Resolves when the engines were asked; undefined: they have told it. */
export function askSystemFirst(pool: Pool, stopping: AbortSignal): Promise<void> | undefined {
  if (known.has(pool)) return undefined;
  const asked = asking.get(pool) ?? ask(pool, stopping).finally(() => asking.delete(pool));
  asking.set(pool, asked);
  return asked;
}

async function ask(pool: Pool, stopping: AbortSignal): Promise<void> {
  try {
    const refuses = !(await takes(pool, CONVERSATION, stopping));
    known.set(pool, refuses && (await takes(pool, asUsers(CONVERSATION), stopping)));
  } catch (error) {
    // What does not answer now is asked again by the next call, and what tells no ids is not.
    if (!asPolarError(error).retryable) known.set(pool, false);
  }
}

async function takes(pool: Pool, messages: readonly JsonObject[], stopping: AbortSignal): Promise<boolean> {
  try {
    await tokenize(pool, { messages, tools: [], fields: {} }, stopping);
    return true;
  } catch (error) {
    if (asPolarError(error).reason === 'ENGINE_REFUSED') return false;
    throw error;
  }
}
