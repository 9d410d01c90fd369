// The openai-responses dialect: an input as a conversation of openai-chat. What was one reply of a model, its reasoning,
// text and calls, becomes one assistant message again.
import { arrayOf, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { assistantOf, type Spoken } from './assistant.ts';
import { readItem } from './items.ts';
import type { NamedItems } from './stored.ts';

/** What one item says. */
export type Piece =
  | Spoken
  /** A whole message of anyone but the assistant; `answers` is the call that it must answer. */
  | { readonly kind: 'message'; readonly message: JsonObject; readonly answers?: string };

/** What the items of an input are read after. */
export interface Before {
  /** The messages that they go on from. */
  readonly previous: readonly JsonObject[];
  /** The items that they name. */
  readonly named: NamedItems;
}

/** The messages of `input`. */
export function readInput(
  input: JsonValue | undefined,
  { previous, named }: Before,
  faults: Faults,
): JsonObject[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  if (previous.length > 0 && (input === undefined || input === null)) return [];
  if (!Array.isArray(input) || input.length === 0) {
    faults.add('input', 'must be a string or an array with at least one item');
    return [];
  }
  const messages: JsonObject[] = [];
  const callIds = new Set(previous.flatMap(callIdsIn));
  let reply: Spoken[] = [];
  const endReply = (): void => {
    if (reply.length > 0) messages.push(assistantOf(reply));
    reply = [];
  };
  for (const [i, item] of (input as readonly JsonValue[]).entries()) {
    const piece = readItem(item, `input[${i}]`, faults, named);
    if (piece === undefined) continue;
    if (piece.kind === 'message') {
      endReply();
      const answered = piece.answers === undefined || callIds.has(piece.answers);
      faults.expect(answered, `input[${i}].call_id`, 'must name a call of an earlier item');
      messages.push(piece.message);
    } else {
      if (beginsReply(piece, reply)) endReply();
      if (piece.kind === 'call') callIds.add(piece.id);
      reply.push(piece);
    }
  }
  endReply();
  return messages;
}

/**
 * A reply's ids say which one it is. Where the harness left them out, its reasoning comes first, then one text; what is said
 * between calls and behind them is still the same reply, as their outputs have not come.
 */
function beginsReply(piece: Spoken, reply: readonly Spoken[]): boolean {
  const last = reply.at(-1);
  if (piece.reply !== undefined && last?.reply !== undefined) return piece.reply !== last.reply;
  // It says nothing: LangChain may send the text's end behind a call as a text of its own.
  if (piece.kind === 'text' && piece.content === '') return false;
  if (piece.kind === 'text') return last?.kind !== 'call' && reply.some(({ kind }) => kind === 'text');
  return piece.kind === 'reasoning' && last !== undefined && last.kind !== 'reasoning';
}

const callIdsIn = ({ tool_calls: calls }: JsonObject): string[] =>
  arrayOf(calls).map((call) => textOf(objectOf(call)['id']) ?? '');
