// The openai-responses dialect: the items of one reply of a model as one assistant message of openai-chat.
import { arrayOf, type JsonObject, type JsonValue } from '../../domain/json.ts';

/** What one item of a model's reply says; `reply` is which one it was, where that is known. */
export type Spoken = { readonly reply?: string | undefined } & (
  | { readonly kind: 'reasoning'; readonly text: string; readonly id: string | undefined }
  | { readonly kind: 'text'; readonly content: JsonValue }
  | { readonly kind: 'call'; readonly id: string; readonly call: JsonObject }
);

/** Assistant messages by the first piece of each, so that a reply of an earlier turn is the very same message again. */
const known = new WeakMap<Spoken, { readonly pieces: readonly Spoken[]; readonly message: JsonObject }>();

/** At least one piece. */
export function assistantOf(pieces: readonly Spoken[]): JsonObject {
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
  return {
    role: 'assistant',
    content: textOf(pieces),
    ...(thought !== undefined && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** What was said before calls, between and behind them. */
function textOf(pieces: readonly Spoken[]): JsonValue {
  const texts = pieces.flatMap((piece) => (piece.kind === 'text' ? [piece.content] : []));
  const [first = null, ...others] = texts;
  if (others.length === 0) return first;
  return texts.every((text) => typeof text === 'string') ? texts.join('') : texts.flatMap(partsOf);
}

const partsOf = (content: JsonValue): readonly JsonValue[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : arrayOf(content);

/** The reasoning of a reply. LangChain makes two items of a streamed one, its text and what is sealed, both with its id. */
function thoughtOf(pieces: readonly Spoken[]): string | undefined {
  const thoughts = new Map<string | number, string>();
  for (const [i, piece] of pieces.entries()) {
    if (piece.kind !== 'reasoning') continue;
    const item = piece.id ?? i;
    thoughts.set(item, piece.text || (thoughts.get(item) ?? ''));
  }
  const said = [...thoughts.values()].filter((text) => text !== '');
  // Items of a reply that was given here are its reasoning cut where something else was said.
  const ours = pieces.every(({ kind, reply }) => kind !== 'reasoning' || reply !== undefined);
  return thoughts.size === 0 ? undefined : said.join(ours ? '' : '\n\n');
}
