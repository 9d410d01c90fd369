// Payloads by content address, as own chunks in a stream: the client's object store costs ten times the CPU (ADR 3). One
// of several chunks counts once its manifest is there; one of a single chunk is whole as soon as it is stored.
import { crc32 } from 'node:zlib';
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
import { whyNotStored } from './full-store.ts';
import { cameSecond, HEADER_BEHIND, withRetry } from './publish.ts';
import type { Place } from './reads.ts';
import { STREAMS } from './streams.ts';
import { subjects } from './subjects.ts';

/** Written as records are: SMALL_BLOBS_IN_FLIGHT_MAX of these are stored well within PUBLISH_ACK_MS. */
const SMALL_PUT_BYTES_MAX = 64 * 1024;
/** Tries to renew a manifest that others renew, too; then the blob is written as if it was not there. */
const RENEWALS_MAX = 5;
/** Asked for at once of blobs that are wanted together; the rest when these are there. */
const READ_AT_ONCE_BYTES = 4 * 1024 * 1024;

export interface BlobStore {
  /** Store, durable when it returns; equal bytes are stored once. */
  put(bytes: Uint8Array, signal?: AbortSignal): Promise<BlobRef>;
  /** Fetch and verify. Throws BLOB_MISSING. */
  get(ref: Ref, signal?: AbortSignal): Promise<Uint8Array>;
  /** The same of several that are wanted together. */
  getAll(refs: readonly Ref[], signal?: AbortSignal): Promise<Fetched>;
}

type Ref = Pick<BlobRef, 'sha256' | 'sizeBytes'> & Partial<Pick<BlobRef, 'crc32'>>;

export interface Fetched {
  /** In the order in which they were asked for; BLOB_MISSING in the place of what is gone. */
  readonly blobs: readonly (Uint8Array | PolarError)[];
  /** They lie in it, and nothing else does. */
  readonly memory: Uint8Array;
}

/** The default store: chunks in POLAR_BLOBS. */
export function createBlobStore(bus: Bus): BlobStore {
  const puts = slots(SMALL_PUT_BYTES_MAX);
  const gets = slots(BLOB_CHUNK_BYTES);
  /** With the time that much takes on a slow disk. */
  const write = async (subject: string, data: Uint8Array): Promise<unknown> => {
    try {
      return await bus.js.publish(subject, data, { timeout: PUBLISH_ACK_MS * 4 });
    } catch (error) {
      throw (await whyNotStored(bus.nc, subject)) ?? error;
    }
  };
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
    const size = Buffer.from(String(bytes.byteLength));
    if (await withRetry('write blob', signal, () => renewed(bus, manifest, size))) return;
    for (let i = 0; i * BLOB_CHUNK_BYTES < bytes.byteLength; i++) {
      const chunk = bytes.subarray(i * BLOB_CHUNK_BYTES, (i + 1) * BLOB_CHUNK_BYTES);
      await withRetry('write blob', signal, () => write(subjects.blobChunk(digest, i), chunk));
    }
    await withRetry('write blob', signal, () => write(manifest, size));
  };
  const getAll = (refs: readonly Ref[], signal?: AbortSignal): Promise<Fetched> => {
    const sizeBytes = refs.reduce((sum, ref) => sum + Number(ref.sizeBytes), 0);
    return gets(sizeBytes).run(async () => {
      const memory = Buffer.allocUnsafeSlow(sizeBytes);
      const parts = partsOf(memory, refs);
      const lacking: Place[] = [];
      for (const some of together(parts.flatMap(({ places }) => places))) {
        lacking.push(...(await fill(bus, some, signal)));
      }
      return { blobs: parts.map((part) => verified(part, lacking)), memory };
    });
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
        return refOf(digest, bytes);
      }),

    getAll,
    async get(ref, signal) {
      const [blob] = (await getAll([ref], signal)).blobs;
      if (blob instanceof PolarError) throw blob;
      return blob as Uint8Array;
    },
  };
}

const refOf = (digest: string, bytes: Uint8Array): BlobRef =>
  create(BlobRefSchema, { sha256: digest, sizeBytes: BigInt(bytes.byteLength), crc32: crc32(bytes) });

/**
 * Whether a blob is there; then its manifest is written anew: what is put again is as young as what is put first, and no
 * sweep of old blobs takes it. One that has taken the manifest meanwhile takes the chunks, too, so it does not count then.
 */
async function renewed(bus: Bus, manifest: string, size: Uint8Array): Promise<boolean> {
  for (let tries = 0; tries < RENEWALS_MAX; tries++) {
    const query = { last_by_subj: manifest };
    const last = await bus.direct.getMessage(STREAMS.blobs.name, query).catch(orNone);
    if (last === undefined) return false;
    try {
      await bus.acks.store(manifest, size, { [HEADER_BEHIND]: String(last.seq) });
      return true;
    } catch (error) {
      if (!cameSecond(error)) throw error;
    }
  }
  return false;
}

/** It must be nobody else's, as equal bytes are stored once. */
export async function removeBlob(bus: Bus, sha256: string, signal?: AbortSignal): Promise<void> {
  const filter = subjects.blobParts(sha256);
  await withRetry('remove blob', signal, () => bus.jsm.streams.purge(STREAMS.blobs.name, { filter }));
}

/**
 * The same of one that was put last before the sequence `seq` of POLAR_BLOBS, and else of nothing. The manifest goes first:
 * who puts it again from there on writes all of it. Returns whether it is gone.
 */
export async function removeOldBlob(bus: Bus, sha256: string, seq: number, signal: AbortSignal) {
  const { name } = STREAMS.blobs;
  const manifest = subjects.blobManifest(sha256);
  const purge = (filter: string) =>
    withRetry('remove blob', signal, () => bus.jsm.streams.purge(name, { filter, seq }));
  const { purged } = await purge(manifest);
  const put = () => bus.jsm.streams.getMessage(name, { last_by_subj: manifest }).catch(orNone);
  if (purged === 0 && (await withRetry('remove blob', signal, put)) !== undefined) return false;
  return (await purge(subjects.blobParts(sha256))).purged > 0;
}

/** Where a blob is to lie. */
interface Part {
  readonly ref: Ref;
  readonly bytes: Uint8Array;
  /** One for each chunk. */
  readonly places: readonly Place[];
}

function partsOf(memory: Buffer, refs: readonly Ref[]): Part[] {
  let at = 0;
  return refs.map((ref) => {
    const { sha256, sizeBytes } = ref;
    const bytes = memory.subarray(at, at + Number(sizeBytes));
    at += bytes.byteLength;
    const places = Array.from({ length: Math.ceil(bytes.byteLength / BLOB_CHUNK_BYTES) }, (_, i) => ({
      subject: subjects.blobChunk(sha256, i),
      into: bytes.subarray(i * BLOB_CHUNK_BYTES, (i + 1) * BLOB_CHUNK_BYTES),
    }));
    return { ref, bytes, places };
  });
}

/** In runs that are asked for at once. */
function* together(places: readonly Place[]): Generator<readonly Place[], void> {
  for (let start = 0; start < places.length; ) {
    let end = start;
    for (let size = 0; end < places.length && size < READ_AT_ONCE_BYTES; end++) {
      size += places[end]?.into.byteLength ?? 0;
    }
    yield places.slice(start, end);
    start = end;
  }
}

function verified({ ref, bytes, places }: Part, lacking: readonly Place[]): Uint8Array | PolarError {
  const chunk = lacking.length === 0 ? -1 : places.findIndex((place) => lacking.includes(place));
  if (chunk >= 0) return missing(ref.sha256, `chunk ${chunk} is not there`);
  return isWhole(ref, bytes) ? bytes : missing(ref.sha256, 'its content differs from its digest');
}

/** By what finds damage fastest: a digest of each trajectory was a quarter of a stream's CPU. */
const isWhole = ({ sha256: digest, crc32: sum = 0 }: Ref, bytes: Uint8Array): boolean =>
  sum === 0 ? sha256(bytes) === digest : crc32(bytes) === sum;

/** Puts chunks into their places; returns those for which there is none. */
async function fill(bus: Bus, places: readonly Place[], signal?: AbortSignal): Promise<Place[]> {
  const { direct, reads, jsm } = bus;
  const lacking = await withRetry('read blob', signal, () =>
    reads.usable ? reads.fill(STREAMS.blobs.name, places) : fillSlowly(direct, places),
  );
  // Any replica answers, and may be behind what was just put: only the stream's leader can say that it is not there.
  return await withRetry('read blob', signal, () => fillSlowly(jsm.streams, lacking));
}

interface Messages {
  getMessage(stream: string, query: { last_by_subj: string }): Promise<{ readonly data: Uint8Array }>;
}

/** By the client's own connection, from any replica or from the leader. */
async function fillSlowly(from: Messages, places: readonly Place[]): Promise<Place[]> {
  const lacking: Place[] = [];
  const fillOne = async (place: Place): Promise<void> => {
    const query = { last_by_subj: place.subject };
    const message = await from.getMessage(STREAMS.blobs.name, query).catch(orNone);
    if (message?.data.byteLength === place.into.byteLength) place.into.set(message.data);
    else lacking.push(place);
  };
  await Promise.all(places.map(fillOne));
  return lacking;
}

function orNone(error: Error): undefined {
  if (!/no message|message not found|404/i.test(error.message)) throw error;
}

/** By the size of a blob: many of those of at most `smallBytes` at once, few of others. */
function slots(smallBytes: number): (sizeBytes: number) => Semaphore {
  const small = new Semaphore(SMALL_BLOBS_IN_FLIGHT_MAX);
  const large = new Semaphore(BLOBS_IN_FLIGHT_MAX);
  return (sizeBytes) => (sizeBytes <= smallBytes ? small : large);
}

const missing = (digest: string, why: string): PolarError =>
  new PolarError('BLOB_MISSING', `blob ${digest}: ${why}`);
