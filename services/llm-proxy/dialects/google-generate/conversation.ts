// The google-generate dialect: a conversation in the words of openai-chat.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { ReadOnce } from '../read-once.ts';
import { contentOf, partsOf } from './content.ts';
import { camelCased } from './names.ts';
import { turnsOf } from './pieces.ts';
import { type Calls, NO_CALLS, readTurn } from './turn.ts';

const SYSTEMS = new ReadOnce<Calls, readonly JsonObject[]>();
const TURNS = new ReadOnce<Calls, readonly JsonObject[]>();

export function readConversation(body: JsonObject, faults: Faults): readonly JsonObject[] {
  const { systemInstruction: system, contents } = body;
  const messages: JsonObject[] = [];
  if (system !== undefined && system !== null) {
    const read = () => ({ said: [systemMessage(system, faults)], after: NO_CALLS });
    messages.push(...SYSTEMS.read(system, NO_CALLS, faults, read).said);
  }
  const some = Array.isArray(contents) && contents.length > 0;
  faults.expect(some, 'contents', 'must be an array with at least one content');
  let calls = NO_CALLS;
  for (const { index, content } of turnsOf(arrayOf(contents))) {
    if (!faults.expect(isObject(content), `contents[${index}]`, 'must be an object')) continue;
    const read = () => readTurn(objectOf(content), calls, `contents[${index}]`, faults);
    const { said, after } = TURNS.read(content, calls, faults, read);
    messages.push(...said);
    calls = after;
  }
  return messages;
}

/** From a content, its parts, or text. */
function systemMessage(value: JsonValue, faults: Faults): JsonObject {
  const field = 'systemInstruction.parts';
  const { parts = value } = isObject(value) ? camelCased(value) : {};
  const given = typeof parts === 'string' ? [{ text: parts }] : parts;
  const read = partsOf(isObject(given) ? [given] : given, field, faults);
  return { role: 'system', content: contentOf(read, field, faults) };
}
