// The google-generate dialect: streamed replies in a history. Google's own client keeps each piece of a stream as a content
// of its own; those of the model that follow each other are one turn again.
import { arrayOf, isObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { camelCased } from './names.ts';

/** One turn's content, and the place of its first piece among the request's. */
export interface Turn {
  readonly index: number;
  readonly content: JsonValue;
}

export function turnsOf(contents: readonly JsonValue[]): Turn[] {
  const turns: { readonly index: number; readonly pieces: JsonValue[] }[] = [];
  for (const [index, content] of contents.entries()) {
    const last = turns.at(-1);
    if (last !== undefined && goesOn(last.pieces.at(-1), content)) last.pieces.push(content);
    else turns.push({ index, pieces: [content] });
  }
  return turns.map(({ index, pieces }) => ({ index, content: joined(pieces) }));
}

/** A signature comes with the last piece of a reply. */
const goesOn = (before: JsonValue | undefined, content: JsonValue): boolean =>
  isOfModel(before) && isOfModel(content) && !arrayOf(before['parts']).some(isSigned);

const isOfModel = (content: JsonValue | undefined): content is JsonObject =>
  isObject(content) && content['role'] === 'model' && arrayOf(content['parts']).length > 0;

const isSigned = (part: JsonValue): boolean => typeof camelCased(part)['thoughtSignature'] === 'string';

/** Contents put together, by their first piece, so that an earlier turn is the very same object again. */
const known = new WeakMap<object, { readonly pieces: readonly JsonValue[]; readonly content: JsonObject }>();

function joined(pieces: readonly JsonValue[]): JsonValue {
  const [first = null] = pieces;
  if (pieces.length < 2 || !isObject(first)) return first;
  const before = known.get(first);
  if (before?.pieces.length === pieces.length && before.pieces.every((piece, i) => piece === pieces[i])) {
    return before.content;
  }
  const parts = pieces.flatMap((piece) => (isObject(piece) ? arrayOf(piece['parts']) : []));
  const content = { ...first, parts };
  known.set(first, { pieces, content });
  return content;
}
