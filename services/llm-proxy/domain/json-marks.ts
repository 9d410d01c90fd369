// How much structure JSON has, by its bytes: a parsed value takes many times the memory that its bytes do, text does not.
import type { Bytes } from './bytes.ts';

const [QUOTE, COMMA, BACKSLASH, ARRAY, OBJECT] = [0x22, 0x2c, 0x5c, 0x5b, 0x7b];

/** Whether there are more commas and opening brackets than `most` outside of strings: of values there are about as many. */
export function hasMoreMarks({ pieces }: Bytes, most: number): boolean {
  let count = 0;
  let inString = false;
  // A piece may end between a backslash and what it stands before.
  let at = 0;
  for (const piece of pieces) {
    for (; at < piece.length; at++) {
      const byte = piece[at];
      if (byte === QUOTE) inString = !inString;
      else if (inString) at += byte === BACKSLASH ? 1 : 0;
      else if ((byte === COMMA || byte === ARRAY || byte === OBJECT) && ++count > most) return true;
    }
    at -= piece.length;
  }
  return false;
}
