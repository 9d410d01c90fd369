// The anthropic-messages dialect: a conversation in the words of openai-chat.
import { arrayOf, isObject, type JsonObject, objectOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { GrownSet } from '../grown.ts';
import { ReadOnce } from '../read-once.ts';
import { type Calls, readSystem, readTurn, type Turn } from './turn.ts';

const NO_CALLS: Calls = GrownSet.none;
const SYSTEMS = new ReadOnce<Calls, Turn>();
const TURNS = new ReadOnce<Calls, Turn>();

/** The messages, and the tools that come up amid them. */
export function readConversation({ system, messages }: JsonObject, faults: Faults): Turn {
  const turns: Turn[] = [];
  const silent = (system ?? '') === '' || (Array.isArray(system) && system.length === 0);
  if (system !== undefined && system !== null && !silent) {
    const read = () => ({ said: readSystem(system, 'system', faults), after: NO_CALLS });
    turns.push(SYSTEMS.read(system, NO_CALLS, faults, read).said);
  }
  const some = Array.isArray(messages) && messages.length > 0;
  faults.expect(some, 'messages', 'must be an array with at least one message');
  let calls = NO_CALLS;
  for (const [i, message] of arrayOf(messages).entries()) {
    if (!faults.expect(isObject(message), `messages[${i}]`, 'must be an object')) continue;
    const read = () => readTurn(objectOf(message), calls, `messages[${i}]`, faults);
    const { said, after } = TURNS.read(message, calls, faults, read);
    turns.push(said);
    calls = after;
  }
  return { messages: turns.flatMap((turn) => turn.messages), tools: turns.flatMap((turn) => turn.tools) };
}
