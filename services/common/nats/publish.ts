// Acknowledged publishes with retry under one id, and claim checks above the inline limit.
import type { MsgHdrs } from 'nats';
import { sleep } from '../clock.ts';
import { PolarError } from '../errors.ts';
import { INLINE_BYTES_MAX, PUBLISH_PAUSE_MS, PUBLISH_TOTAL_MS } from '../limits.ts';
import type { Fields } from './acks.ts';
import type { BlobStore } from './blobs.ts';
import type { Bus } from './bus.ts';
import { type BUCKETS, subjectOfKey } from './streams.ts';

/** JetStream's code for a failed expectation. */
const WRONG_LAST_SEQUENCE = 10071;
const HEADER_SHA256 = 'Polar-Blob-Sha256';
const HEADER_SIZE = 'Polar-Blob-Size';
/** JetStream's: an equal id is stored once; store only behind this sequence of the subject. */
export const HEADER_MSG_ID = 'Nats-Msg-Id';
export const HEADER_BEHIND = 'Nats-Expected-Last-Subject-Sequence';

export interface PublishOptions {
  /** A retry under the same id is stored once (two minutes). */
  readonly msgId?: string;
  /** Store only if the subject has no message yet; a second publish is success. */
  readonly createOnce?: boolean;
  /** Store only behind this sequence, the subject's last one (0: none); else STATE_FENCED. Not with `createOnce`. */
  readonly behind?: number;
  /** What the message itself holds where its bytes go to the blob store: whose they are, should they be lost there. */
  readonly outline?: Uint8Array;
  readonly signal?: AbortSignal;
}

/** Publish and wait until it is stored. Returns its stream sequence, 0 when `createOnce` found it there. */
export async function publish(
  bus: Bus,
  blobs: BlobStore,
  subject: string,
  bytes: Uint8Array,
  options: PublishOptions = {},
): Promise<number> {
  const small = bytes.byteLength <= INLINE_BYTES_MAX;
  const [body, claim] = small ? [bytes, {}] : await checkIn(blobs, bytes, options);
  const behind = options.createOnce ? 0 : options.behind;
  const fields: Record<string, string> = { ...claim };
  if (options.msgId !== undefined) fields[HEADER_MSG_ID] = options.msgId;
  if (behind !== undefined) fields[HEADER_BEHIND] = String(behind);
  return await withRetry(subject, options.signal, async () => {
    try {
      return (await bus.acks.store(subject, body, fields)).seq;
    } catch (error) {
      if (!cameSecond(error)) throw error;
      if (options.createOnce) return 0;
      throw new PolarError('STATE_FENCED', `${subject}: another message came first`, { cause: error });
    }
  });
}

/** A header: the server removes the message after that. For buckets whose marks end, once this process has opened them. */
export const endingAfter = (ms: number): Fields => ({ 'Nats-TTL': `${Math.ceil(ms / 1_000)}s` });

/**
 * Delete a key of a bucket whose marks end, and which this process has opened; stored when it returns. The mark stays for
 * `knownMs`, and must outlast what it marks: where it is gone, a server that was killed may have that again.
 */
export async function deleteKey(
  bus: Bus,
  bucket: keyof typeof BUCKETS,
  key: string,
  knownMs: number,
): Promise<void> {
  const fields = { 'KV-Operation': 'DEL', ...endingAfter(knownMs) };
  await bus.acks.store(subjectOfKey(bucket, key), new Uint8Array(), fields);
}

/** The error code of JetStream's API, if it answered. */
export const jetstreamCode = (error: unknown): number | undefined =>
  (error as { api_error?: { err_code?: number } }).api_error?.err_code;

/** Nothing was stored: another message came first behind the sequence that was named. */
export const cameSecond = (error: unknown): boolean => jetstreamCode(error) === WRONG_LAST_SEQUENCE;

/** NATS_STORE_FULL where JetStream refused a message because a stream, an account or the server holds all it may. */
export function storeFull(what: string, error: unknown): PolarError | undefined {
  if (error instanceof PolarError) return error.reason === 'NATS_STORE_FULL' ? error : undefined;
  const message = error instanceof Error ? error.message : String(error);
  if (!/maximum (messages|bytes)|insufficient (storage|resources)|no space/.test(message)) return undefined;
  return new PolarError('NATS_STORE_FULL', `${what}: ${message}`, { cause: error });
}

/** Run `attempt` until it succeeds, the budget is over, or the server refuses for good. */
export async function withRetry<T>(
  what: string,
  signal: AbortSignal | undefined,
  attempt: () => Promise<T>,
): Promise<T> {
  const until = performance.now() + PUBLISH_TOTAL_MS;
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof PolarError) throw error;
      const full = storeFull(what, error);
      if (full !== undefined) throw full;
      if (performance.now() > until) {
        const message = error instanceof Error ? error.message : String(error);
        throw new PolarError('NATS_UNAVAILABLE', `${what}: ${message}`, { cause: error });
      }
    }
    await sleep(PUBLISH_PAUSE_MS, signal);
  }
}

/** What is published in the place of bytes that are too many for a message. */
async function checkIn(
  blobs: BlobStore,
  bytes: Uint8Array,
  { outline = new Uint8Array(), signal }: PublishOptions,
): Promise<[Uint8Array, Fields]> {
  const { sha256, sizeBytes } = await blobs.put(bytes, signal);
  return [outline, { [HEADER_SHA256]: sha256, [HEADER_SIZE]: String(sizeBytes) }];
}

/** The body of a message, fetched from the blob store where the message is a claim check. */
export async function checkOut(
  blobs: BlobStore,
  message: { readonly data: Uint8Array; readonly headers?: Pick<MsgHdrs, 'get'> | undefined },
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const sha256 = claimOf(message.headers);
  if (sha256 === undefined) return message.data;
  const sizeBytes = BigInt(message.headers?.get(HEADER_SIZE) ?? '0');
  return await blobs.get({ sha256, sizeBytes }, signal);
}

/** Digest of the blob that a message stands for. */
export const claimOf = (headers: Pick<MsgHdrs, 'get'> | undefined): string | undefined =>
  headers?.get(HEADER_SHA256) || undefined;
