// How many values a request holds, told from its bytes: to make objects of millions of them stands a service still for longer
// than a lease lives, and a few bytes are enough for each.
import type { DescMessage } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** Of a message by field number: what its messages hold. */
interface Shape extends ReadonlyMap<number, Shape> {}

const shapes = new Map<DescMessage, Shape>();
/** Number of the value in an entry of a map. */
const VALUE_OF_ENTRY = 2;
const [QUOTE, BACKSLASH, COMMA, BRACE, BRACKET] = [...Buffer.from('"\\,{[')];

function shapeOf(message: DescMessage): Shape {
  const known = shapes.get(message);
  if (known !== undefined) return known;
  const shape = new Map<number, Shape>();
  // A message may hold itself.
  shapes.set(message, shape);
  for (const { fieldKind, number, message: inner } of message.fields) {
    const held = inner && shapeOf(inner);
    if (fieldKind === 'map') shape.set(number, new Map(held && [[VALUE_OF_ENTRY, held]]));
    else if (held !== undefined) shape.set(number, held);
  }
  return shape;
}

/** Fields of a message in binary form, at every level; no further than the first above `max`. Throws where it is none. */
export function binaryValues(schema: DescMessage, bytes: Uint8Array, max: number): number {
  const reader = new BinaryReader(bytes);
  const ends = [{ shape: shapeOf(schema), end: reader.len }];
  let count = 0;
  for (let at = ends[0]; at !== undefined && count <= max; at = ends.at(-1)) {
    if (reader.pos >= at.end) {
      ends.pop();
      continue;
    }
    const [no, type] = reader.tag();
    count++;
    const held = type === WireType.LengthDelimited ? at.shape.get(no) : undefined;
    if (held === undefined) reader.skip(type, no);
    else ends.push({ shape: held, end: reader.uint32() + reader.pos });
  }
  return count;
}

/** Values of JSON at every level, and its brackets; no further than the first above `max`. */
export function jsonValues(text: Uint8Array, max: number): number {
  let count = 0;
  let quoted = false;
  for (let at = 0; at < text.length && count <= max; at++) {
    const byte = text[at];
    if (byte === QUOTE) quoted = !quoted;
    else if (quoted) at += byte === BACKSLASH ? 1 : 0;
    else if (byte === COMMA || byte === BRACE || byte === BRACKET) count++;
  }
  return count;
}
