// The anthropic-messages dialect: arguments of tool calls are objects here and text in the conversation.
import { isObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { parseArguments } from '../nesting.ts';

/** The API's own convention for arguments that are no JSON; what it holds comes back as it was. */
const INVALID = 'INVALID_JSON';

/** Arguments as a whole reply shows them: what was cut is completed as the official client does with a stream. */
export function inputOf(text: string): JsonValue {
  if (text === '') return {};
  return parseArguments(text) ?? parseArguments(completed(text)) ?? { [INVALID]: text };
}

/** The text for arguments that come back. */
export function argumentsOf(input: JsonValue): string {
  const [key, ...others] = isObject(input) ? Object.keys(input) : [];
  if (key !== INVALID || others.length > 0) return JSON.stringify(input);
  const text = (input as JsonObject)[INVALID];
  return typeof text === 'string' ? text : JSON.stringify(input);
}

/** A bracket, a colon, a comma, a whole string, a run of anything else but space, or the quote of a cut string. */
const TOKEN = /[{}[\]:,]|"(?:[^"\\]|\\.)*"|[^\s{}[\]:,"]+|"/gs;
const CLOSING: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/** One that is open, and what it lies in. */
interface Bracket {
  readonly closing: string;
  readonly outside: Bracket | undefined;
}

/** JSON that was cut, up to its last whole value, with its brackets closed. */
function completed(text: string): string {
  let open: Bracket | undefined;
  let whole: { readonly end: number; readonly inside: Bracket | undefined } = { end: 0, inside: undefined };
  let key = false;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (token === '"') break;
    const end = index + token.length;
    const closing = CLOSING[token];
    if (closing !== undefined) open = { closing, outside: open };
    else if (token === '}' || token === ']') open = open?.outside;
    else if (token === ':') key = true;
    if (isWhole(token, end < text.length, key || open?.closing === ']')) whole = { end, inside: open };
    if (token !== ':') key = false;
  }
  const closings: string[] = [];
  for (let at = whole.inside; at !== undefined; at = at.outside) closings.push(at.closing);
  return text.slice(0, whole.end) + closings.join('');
}

/** Whether a value ends with the token. A string before its colon is a key; a number at the end may have gone on. */
function isWhole(token: string, more: boolean, isValue: boolean): boolean {
  if (token === ':' || token === ',') return false;
  if (/^[{}[\]]$/.test(token)) return true;
  return isValue && (token.startsWith('"') || /^(true|false|null)$/.test(token) || more);
}
