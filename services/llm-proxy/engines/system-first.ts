// Whether the chat template of a pool's engines takes the first message alone for the system. Nobody says so but by
// refusing: they are asked, once, for the ids of a conversation that only such a template refuses.
import { settledWithin } from '../../common/clock.ts';
import { asPolarError } from '../../common/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { asUsers } from '../domain/late-system.ts';
import type { Pool } from './pool.ts';
import { tokenize } from './tokenize.ts';

/** How long calls wait for what is being asked; then they go as they are, and a later one has the answer. */
const WAIT_MS = 5_000;

const CONVERSATION: readonly JsonObject[] = ['system', 'user', 'assistant', 'system', 'user'].map((role) => ({
  role,
  content: 'x',
}));

const known = new WeakMap<Pool, boolean>();
const asking = new WeakMap<Pool, Promise<void>>();

/** Undefined: they were not asked, or have not answered yet. False also where they cannot tell. */
export const takesSystemFirstOnly = (pool: Pool): boolean | undefined => known.get(pool);

/** Asks the engines; resolves when they have answered, or within WAIT_MS. */
export async function askSystemFirst(pool: Pool, stopping: AbortSignal): Promise<void> {
  const asked = asking.get(pool) ?? ask(pool, stopping).finally(() => asking.delete(pool));
  asking.set(pool, asked);
  await settledWithin(asked, WAIT_MS);
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
