// Reasoning as the opaque string that a harness keeps and sends back: a signature of thinking, encrypted content. The
// text itself is inside, so that history comes back verbatim also where a harness keeps the string alone.
import { createHash } from 'node:crypto';

/** `polar1` in base64: what is sealed here can be told from what others have signed. */
const MARK = 'cG9sYXIx';
/** Bytes of the text's SHA-256 in front of it. A multiple of 3, so that the whole is one valid base64. */
const DIGEST_BYTES = 6;

/** Valid base64, as some clients decode it. */
export function sealReasoning(text: string): string {
  const bytes = Buffer.from(text);
  return MARK + Buffer.concat([digestOf(bytes), bytes]).toString('base64');
}

/** The text inside; undefined: not sealed here, or changed since. */
export function openReasoning(seal: string): string | undefined {
  if (!seal.startsWith(MARK)) return undefined;
  const bytes = Buffer.from(seal.slice(MARK.length), 'base64');
  const text = bytes.subarray(DIGEST_BYTES);
  return digestOf(text).equals(bytes.subarray(0, DIGEST_BYTES)) ? text.toString() : undefined;
}

const digestOf = (bytes: Uint8Array): Buffer =>
  createHash('sha256').update(bytes).digest().subarray(0, DIGEST_BYTES);
