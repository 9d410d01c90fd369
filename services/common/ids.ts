// Identifiers and digests.
import { hash, randomBytes } from 'node:crypto';

const ID_BYTES = 12;
/** Random bytes for ids to come: asking for few at a time costs as much as for many. */
let pool = Buffer.alloc(0);

/** A random id: prefix, dash, 96 bits as lower-case hex. */
export function newId(prefix: string): string {
  if (pool.length === 0) pool = randomBytes(ID_BYTES * 256);
  const id = pool.toString('hex', 0, ID_BYTES);
  pool = pool.subarray(ID_BYTES);
  return `${prefix}-${id}`;
}

/** An unguessable credential: 256 bits, URL-safe. */
export const newSecret = (): string => randomBytes(32).toString('base64url');

/** Lower-case hex SHA-256. */
export const sha256 = (bytes: Uint8Array | string): string => hash('sha256', bytes, 'hex');

const HALF_CHARS = 32;
const half = Buffer.alloc(HALF_CHARS);

/** The first half of it. A text of its own: the slice of a longer one keeps all of that, and is slow to compare. */
export function sha256Half(text: string): string {
  half.write(sha256(text), 'latin1');
  return half.toString('latin1');
}

const KEY_CHARS_MAX = 128;

/** What is held for a key: of a longer one its digest, as keys say what a request does, and that may be megabytes. */
export const shortKey = (key: string): string => (key.length > KEY_CHARS_MAX ? sha256Half(key) : key);

/** Ids that become NATS subject tokens, file names and URL parts. */
export const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** Task ids may hold dots, as the reference system's do; `subjectToken` makes them one token. */
export const TASK_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Names of queues. */
export const QUEUE_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** An id as one NATS subject token: dots become `=2e`, which no id holds. */
export const subjectToken = (id: string): string => id.replaceAll('.', '=2e');
