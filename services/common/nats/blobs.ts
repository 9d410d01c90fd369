// Payloads by content address, as own chunks in a stream: the client's object store costs ten times the CPU (ADR 3).
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
import type { Bus } from './bus.ts';
import { withRetry } from './publish.ts';
import { STREAMS } from './streams.ts';
import { subjects } from './subjects.ts';

export interface BlobStore {
  /** Store, durable when it returns; equal bytes are stored once. */
  put(bytes: Uint8Array, signal?: AbortSignal): Promise<BlobRef>;
  /** Fetch and verify. Throws BLOB_MISSING. */
  get(ref: Pick<BlobRef, 'sha256' | 'sizeBytes'>, signal?: AbortSignal): Promise<Uint8Array>;
}

/** The default store: chunks in POLAR_BLOBS, then a manifest that makes them count. */
export function createBlobStore(bus: Bus): BlobStore {
  const slots = new Semaphore(BLOBS_IN_FLIGHT_MAX);
  const smallSlots = new Semaphore(SMALL_BLOBS_IN_FLIGHT_MAX);
  const read = async (subject: string): Promise<Uint8Array | undefined> => {
    if (bus.reads.usable) return await bus.reads.last(STREAMS.blobs.name, subject);
    try {
      return (await bus.direct.getMessage(STREAMS.blobs.name, { last_by_subj: subject })).data;
    } catch (error) {
      if (/no message|message not found|404/i.test((error as Error).message)) return undefined;
      throw error;
    }
  };
  const write = async (subject: string, data: Uint8Array): Promise<void> => {
    await bus.js.publish(subject, data, { timeout: PUBLISH_ACK_MS * 4 });
  };

  return {
    put: (bytes, signal) =>
      slots.run(async () => {
        if (bytes.byteLength > BLOB_BYTES_MAX) {
          throw new PolarError(
            'NATS_STORE_FULL',
            `a payload of ${bytes.byteLength} bytes is above BLOB_BYTES_MAX`,
          );
        }
        const digest = sha256(bytes);
        const manifest = subjects.blobManifest(digest);
        const known = await withRetry('read blob', signal, () => read(manifest));
        if (known === undefined) {
          for (let i = 0; i * BLOB_CHUNK_BYTES < bytes.byteLength; i++) {
            const chunk = bytes.subarray(i * BLOB_CHUNK_BYTES, (i + 1) * BLOB_CHUNK_BYTES);
            await withRetry('write blob', signal, () => write(subjects.blobChunk(digest, i), chunk));
          }
          const size = Buffer.from(String(bytes.byteLength));
          await withRetry('write blob', signal, () => write(manifest, size));
        }
        return create(BlobRefSchema, { sha256: digest, sizeBytes: BigInt(bytes.byteLength) });
      }),

    get: (ref, signal) => {
      const size = Number(ref.sizeBytes);
      return (size <= BLOB_CHUNK_BYTES ? smallSlots : slots).run(async () => {
        const chunks: Uint8Array[] = [];
        for (let i = 0; i * BLOB_CHUNK_BYTES < size; i++) {
          const chunk = await withRetry('read blob', signal, () => read(subjects.blobChunk(ref.sha256, i)));
          if (chunk === undefined) throw missing(ref.sha256, `chunk ${i} is not there`);
          chunks.push(chunk);
        }
        const [only, ...more] = chunks;
        const bytes = only !== undefined && more.length === 0 ? only : Buffer.concat(chunks);
        if (sha256(bytes) !== ref.sha256) throw missing(ref.sha256, 'its content differs from its digest');
        return bytes;
      });
    },
  };
}

const missing = (digest: string, why: string): PolarError =>
  new PolarError('BLOB_MISSING', `blob ${digest}: ${why}`);
