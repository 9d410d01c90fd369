// The openai-responses dialect: an input as a conversation of openai-chat. What was one reply of a model, its reasoning,
// text and calls, becomes one assistant message again.
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { readItem } from './items.ts';

/** What one item of a model's reply says; `reply` is which one it was, where that is known. */
type Spoken = { readonly reply?: string | undefined } & (
  | { readonly kind: 'reasoning'; readonly text: string; readonly id: string | undefined }
  | { readonly kind: 'text'; readonly content: JsonValue }
  | { readonly kind: 'call'; readonly id: string; readonly call: JsonObject }
);

/** What one item says. */
export type Piece =
  | Spoken
  /** A whole message of anyone but the assistant; `answers` is the call that it must answer. */
  | { readonly kind: 'message'; readonly message: JsonObject; readonly answers?: string };

/** The messages of `input`. */
export function readInput(input: JsonValue | undefined, faults: Faults): JsonObject[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  if (!Array.isArray(input) || input.length === 0) {
    faults.add('input', 'must be a string or an array with at least one item');
    return [];
  }
  const messages: JsonObject[] = [];
  const callIds = new Set<string>();
  let reply: Spoken[] = [];
  const endReply = (): void => {
    if (reply.length > 0) messages.push(assistantOf(reply));
    reply = [];
  };
  for (const [i, item] of (input as readonly JsonValue[]).entries()) {
    const piece = readItem(item, `input[${i}]`, faults);
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

/** A reply's ids say which one it is. Where the harness left them out, it has one text, and its reasoning comes first. */
function beginsReply(piece: Spoken, reply: readonly Spoken[]): boolean {
  const last = reply.at(-1);
  if (piece.reply !== undefined && last?.reply !== undefined) return piece.reply !== last.reply;
  // Behind a call LangChain sends the text's end once more, as a text of its own.
  if (piece.kind === 'text' && piece.content === '') return false;
  if (piece.kind === 'text') return reply.some(({ kind }) => kind === 'text');
  return piece.kind === 'reasoning' && last !== undefined && last.kind !== 'reasoning';
}

/** Assistant messages by the first piece of each, so that a reply of an earlier turn is the very same message again. */
const known = new WeakMap<Spoken, { readonly pieces: readonly Spoken[]; readonly message: JsonObject }>();

function assistantOf(pieces: readonly Spoken[]): JsonObject {
  const [first] = pieces as [Spoken];
  const before = known.get(first);
  if (before?.pieces.length === pieces.length && before.pieces.every((piece, i) => piece === pieces[i])) {
    return before.message;
  }
  const message = merged(pieces);
  known.set(first, { pieces, message });
  return message;
}

function merged(pieces: readonly Spoken[]): JsonObject {
  const thought = thoughtOf(pieces);
  const calls = pieces.flatMap((piece) => (piece.kind === 'call' ? [piece.call] : []));
  const text = pieces.find((piece) => piece.kind === 'text');
  return {
    role: 'assistant',
    content: text?.content ?? null,
    ...(thought !== undefined && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** The reasoning of a reply. LangChain makes two items of a streamed one, its text and what is sealed, both with its id. */
function thoughtOf(pieces: readonly Spoken[]): string | undefined {
  const thoughts = new Map<string | number, string>();
  for (const [i, piece] of pieces.entries()) {
    if (piece.kind !== 'reasoning') continue;
    const item = piece.id ?? i;
    thoughts.set(item, piece.text || (thoughts.get(item) ?? ''));
  }
  const said = [...thoughts.values()].filter((text) => text !== '');
  return thoughts.size === 0 ? undefined : said.join('\n\n');
}
