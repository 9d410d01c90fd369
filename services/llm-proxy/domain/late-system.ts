// What a harness says as the system behind its first message: Claude Code amid the conversation, Codex in several messages
// at its head. Some chat templates, as those of Qwen3.5 and later, take the first message alone for that, and refuse the
// whole conversation.
import type { JsonObject } from './json.ts';
import { Notes } from './notes.ts';

const isSystem = ({ role }: JsonObject): boolean => role === 'system' || role === 'developer';

export const saysLate = (messages: readonly JsonObject[], notes = new Notes()): boolean =>
  notes.each(messages, isSystem).includes(true, 1);

/** The very same each time that the message comes again. */
const known = new WeakMap<JsonObject, JsonObject>();

/** The messages with those as the user's, each in its place: what was said before it stays the beginning of the prompt. */
export const asUsers = (messages: readonly JsonObject[]): JsonObject[] =>
  messages.map((message, i) => (i > 0 && isSystem(message) ? asUser(message) : message));

function asUser(message: JsonObject): JsonObject {
  let said = known.get(message);
  if (said === undefined) {
    said = { ...message, role: 'user' };
    known.set(message, said);
  }
  return said;
}
