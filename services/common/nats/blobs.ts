// Payloads by content address, as own chunks in a stream: the client's object store costs ten times the CPU (ADR 3). One
// of several chunks counts once its manifest is there; one of a single chunk is whole as soon as it is stored.
import { create } from '@bufbuild/protobuf';
import { type BlobRef, BlobRefSchema } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import { Semaphore } from '../clock.ts';
import { PolarError } from '../errors.ts';
import { sha256 } from '../ids.ts';
import {
  BLOB_BYTES_MAX,
  BLOB_CHUNK_BYTES,
  BLOBS_IN_FLIGHT_MAX,
  PUBLISH_ACK_MS,
  SMALL_BLOBS_IN_FLIGHT_MAX,
} from '../limits.ts';
import { giveBack } from '../memory.ts';
import type { Bus } from './bus.ts';
import { withRetry } from './publish.ts';
import { STREAMS } from './streams.ts';
import { subjects } from './subjects.ts';

/** Written as records are: SMALL_BLOBS_IN_FLIGHT_MAX of these are stored well within PUBLISH_ACK_MS. */
const SMALL_PUT_BYTES_MAX = 64 * 1024;

export interface BlobStore {
  /** Store, durable when it returns; equal bytes are stored once. */
  put(bytes: Uint8Array, signal?: AbortSignal): Promise<BlobRef>;
  /** Fetch and verify. Throws BLOB_MISSING. */
  get(ref: Pick<BlobRef, 'sha256' | 'sizeBytes'>, signal?: AbortSignal): Promise<Uint8Array>;
}

/** The default store: chunks in POLAR_BLOBS. */
export function createBlobStore(bus: Bus): BlobStore {
  const puts = slots(SMALL_PUT_BYTES_MAX);
  const gets = slots(BLOB_CHUNK_BYTES);
  const read = async (subject: string): Promise<Uint8Array | undefined> => {
    if (bus.reads.usable) return await bus.reads.last(STREAMS.blobs.name, subject);
    try {
      return (await bus.direct.getMessage(STREAMS.blobs.name, { last_by_subj: subject })).data;
    } catch (error) {
      if (/no message|message not found|404/i.test((error as Error).message)) return undefined;
      throw error;
    }
  };
  /** With the time that much takes on a slow disk. */
  const write = async (subject: string, data: Uint8Array): Promise<unknown> =>
    await bus.js.publish(subject, data, { timeout: PUBLISH_ACK_MS * 4 });
  /** Without a look for an equal one, which it would replace: a look costs as much. */
  const putOnly = async (digest: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> => {
    const subject = subjects.blobChunk(digest, 0);
    const isSmall = bytes.byteLength <= SMALL_PUT_BYTES_MAX;
    await withRetry('write blob', signal, () =>
      isSmall ? bus.acks.store(subject, bytes, {}) : write(subject, bytes),
    );
  };
  const putChunks = async (digest: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> => {
    const manifest = subjects.blobManifest(digest);
    const known = await withRetry('read blob', signal, () => read(manifest));
    if (known !== undefined) return;
    for (let i = 0; i * BLOB_CHUNK_BYTES < bytes.byteLength; i++) {
      const chunk = bytes.subarray(i * BLOB_CHUNK_BYTES, (i + 1) * BLOB_CHUNK_BYTES);
      await withRetry('write blob', signal, () => write(subjects.blobChunk(digest, i), chunk));
    }
    const size = Buffer.from(String(bytes.byteLength));
    await withRetry('write blob', signal, () => write(manifest, size));
  };

  return {
    put: (bytes, signal) =>
      puts(bytes.byteLength).run(async () => {
        if (bytes.byteLength > BLOB_BYTES_MAX) {
          throw new PolarError(
            'NATS_STORE_FULL',
            `a payload of ${bytes.byteLength} bytes is above BLOB_BYTES_MAX`,
          );
        }
        const digest = sha256(bytes);
        const put = bytes.byteLength <= BLOB_CHUNK_BYTES ? putOnly : putChunks;
        await put(digest, bytes, signal);
        return create(BlobRefSchema, { sha256: digest, sizeBytes: BigInt(bytes.byteLength) });
      }),

    get: (ref, signal) => {
      const size = Number(ref.sizeBytes);
      return gets(size).run(async () => {
        const chunks: Uint8Array[] = [];
        for (let i = 0; i * BLOB_CHUNK_BYTES < size; i++) {
          const chunk = await withRetry('read blob', signal, () => read(subjects.blobChunk(ref.sha256, i)));
          if (chunk === undefined) throw missing(ref.sha256, `chunk ${i} is not there`);
          chunks.push(chunk);
        }
        const [only, ...more] = chunks;
        const isOne = only !== undefined && more.length === 0;
        const bytes = isOne ? only : Buffer.concat(chunks);
        if (!isOne) giveBack(chunks);
        if (sha256(bytes) !== ref.sha256) throw missing(ref.sha256, 'its content differs from its digest');
        return bytes;
      });
    },
  };
}

/** By the size of a blob: many of those of at most `smallBytes` at once, few of others. */
function slots(smallBytes: number): (sizeBytes: number) => Semaphore {
  const small = new Semaphore(SMALL_BLOBS_IN_FLIGHT_MAX);
  const large = new Semaphore(BLOBS_IN_FLIGHT_MAX);
  return (sizeBytes) => (sizeBytes <= smallBytes ? small : large);
}

const missing = (digest: string, why: string): PolarError =>
  new PolarError('BLOB_MISSING', `blob ${digest}: ${why}`);
