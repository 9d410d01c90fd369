// The openai-responses dialect: what a request names in the place of sending it. The ids of a response and of its items
// tell the call that it was the reply of.
import type { PolarError } from '../../../common/errors.ts';
import { PROXY_BODY_BYTES_MAX } from '../../../common/limits.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Found, Refers } from '../../domain/stored-replies.ts';
import { type Faults, invalid } from '../faults.ts';
import { assistantOf, type Spoken } from './assistant.ts';
import { replyOf } from './output.ts';
import { itemOf, piecesOf } from './said-items.ts';

const PREVIOUS = 'previous_response_id';
const callOf = (reply: string): string => `call-${reply}`;
/** The id by which the reply of a call is known. */
export const replyIdOf = (callId: string): string => callId.replace(/^call-/, '');

const responseOf = (id: JsonValue | undefined): string | undefined =>
  typeof id === 'string' ? /^resp_(.+)$/.exec(id)?.[1] : undefined;

/** It may leave its type out, as a message may. */
export const isReference = (item: JsonValue): item is JsonObject =>
  isObject(item) &&
  (item['type'] === 'item_reference' ||
    ((item['type'] ?? null) === null && !('role' in item) && 'id' in item));

/** What a request names; undefined: nothing that there could be. */
export function refersTo(body: JsonObject): Refers | undefined {
  const response = responseOf(body[PREVIOUS]);
  const replies = new Set<string>();
  for (const item of arrayOf(body['input'])) {
    const reply = isReference(item) ? replyOf(item['id']) : undefined;
    if (reply !== undefined) replies.add(callOf(reply));
  }
  if (response === undefined && replies.size === 0) return undefined;
  return { previous: response === undefined ? undefined : callOf(response), replies: [...replies] };
}

/** The messages that a request goes on from. Throws DIALECT_INVALID where they are not found. */
export function readPrevious(body: JsonObject, found: Found<JsonObject> | undefined): JsonObject[] {
  const id = textOf(body[PREVIOUS]);
  if (id === undefined) return [];
  const previous = found?.previous;
  if (previous === undefined) {
    throw invalid([{ field: PREVIOUS, description: `Previous response with id '${told(id)}' not found.` }]);
  }
  const last = previous.length - 1;
  return previous.map((message, i) => {
    if (message['role'] !== 'assistant') return message;
    const pieces = piecesOf(message, i === last ? (responseOf(id) ?? '') : '');
    return pieces.length === 0 ? { role: 'assistant', content: '' } : assistantOf(pieces);
  });
}

export const isUnknownResponse = ({ fields }: PolarError): boolean =>
  fields.some(({ field, description }) => field === PREVIOUS && description.endsWith('not found.'));

/** An error is short, whatever it tells of. */
const told = (id: string): string => id.slice(0, 100);

/** The items that one request names. */
export class NamedItems {
  readonly #replies: ReadonlyMap<string, JsonObject>;
  /** Letters that they may still have: an id is short, and may stand for much, time and again. */
  #left = PROXY_BODY_BYTES_MAX;

  constructor(found: Found<JsonObject> | undefined) {
    this.#replies = found?.replies ?? new Map();
  }

  /** What the item says; undefined: it has a fault. */
  read({ id }: JsonObject, at: string, faults: Faults): Spoken | undefined {
    const reply = replyOf(id) ?? '';
    const message = this.#replies.get(callOf(reply));
    const piece = message && itemOf(message, reply, String(id));
    if (!faults.expect(piece !== undefined, `${at}.id`, `Item with id '${told(String(id))}' not found.`))
      return;
    this.#left -= lengthOf(piece as Spoken);
    const most = `what the request names must have at most ${PROXY_BODY_BYTES_MAX} bytes`;
    return faults.expect(this.#left >= 0, at, most) ? piece : undefined;
  }
}

function lengthOf(piece: Spoken): number {
  if (piece.kind === 'reasoning') return piece.text.length;
  if (piece.kind === 'call') return String(objectOf(piece.call['function'])['arguments']).length;
  return typeof piece.content === 'string' ? piece.content.length : JSON.stringify(piece.content).length;
}
