// Snapshots of the state: the state as blobs, then the manifest that makes them count, then the log below it goes.
import { setImmediate as turn } from 'node:timers/promises';
import { create, equals, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { BlobRef } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import {
  type Change,
  CommitSchema,
  type SnapshotManifest,
  SnapshotManifestSchema,
} from '../../../gen/ts/polar/event/v1/state_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { type BlobStore, removeOldBlob } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { publish, withRetry } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { isMissing } from './chain.ts';
import { changesIn } from './changes.ts';

/** Changes encoded between two turns of the event loop. */
const SLICE = 256;
/** A part of the state is stored once it is so large: no more of it is held at once, and no blob is too large for the store. */
const PART_BYTES = 32 * 1024 * 1024;

export interface StoredManifest {
  readonly manifest: SnapshotManifest;
  /** Its own sequence in the snapshot stream. */
  readonly at: number;
}

/** The manifest that counts, if there is one. */
export async function readManifest(bus: Bus, signal: AbortSignal): Promise<StoredManifest | undefined> {
  const stored = await withRetry('read snapshot', signal, async () => {
    try {
      return await bus.jsm.streams.getMessage(STREAMS.snapshot.name, { last_by_subj: subjects.snapshot });
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  });
  return stored && { manifest: fromBinary(SnapshotManifestSchema, stored.data), at: stored.seq };
}

/** The blobs of a snapshot, in order. */
export const partsOf = ({ state, parts }: SnapshotManifest): BlobRef[] =>
  state === undefined ? parts : [state];

/**
 * The changes of a snapshot, in parts. Throws BLOB_MISSING, also when a newer snapshot has replaced it meanwhile, and
 * STATE_INVALID.
 */
export async function* readSnapshot(
  blobs: BlobStore,
  manifest: SnapshotManifest,
  signal: AbortSignal,
): AsyncGenerator<Change[], void> {
  const parts = partsOf(manifest);
  if (parts.length === 0) throw new PolarError('BLOB_MISSING', 'the snapshot manifest names no state');
  for (const part of parts)
    yield changesIn(await blobs.get(part, signal), `blob ${part.sha256} of the snapshot`);
}

/**
 * Writes the state after commit `seq` and drops the log below it. `changes` must be that state, taken in one turn; it is
 * encoded in slices so that heartbeats and RPCs go on. Throws STATE_FENCED when a later snapshot is there already.
 */
export async function writeSnapshot(
  bus: Bus,
  blobs: BlobStore,
  seq: number,
  changes: readonly Change[],
  signal: AbortSignal,
  partBytes = PART_BYTES,
): Promise<number> {
  // What is put from here on may be of the snapshot of another that leads now.
  const { state: before } = await withRetry('look at blobs', signal, () =>
    bus.jsm.streams.info(STREAMS.blobs.name),
  );
  const parts = await putParts(blobs, changes, signal, partBytes);
  const [state] = parts;
  const named = parts.length === 1 && state !== undefined ? { state } : { parts };
  const manifest = create(SnapshotManifestSchema, { seq: BigInt(seq), ...named });
  const old = await replaceManifest(bus, blobs, manifest, signal);
  await withRetry('purge state log', signal, () => bus.jsm.streams.purge(STREAMS.state.name, { seq }));
  // A part in which nothing has changed is the same blob.
  const kept = new Set(parts.map(({ sha256 }) => sha256));
  for (const { sha256 } of old === undefined ? [] : partsOf(old)) {
    if (!kept.has(sha256)) await removeOldBlob(bus, sha256, before.last_seq + 1, signal);
  }
  return parts.reduce((sum, { sizeBytes }) => sum + Number(sizeBytes), 0);
}

async function putParts(
  blobs: BlobStore,
  changes: readonly Change[],
  signal: AbortSignal,
  partBytes: number,
): Promise<BlobRef[]> {
  const parts: BlobRef[] = [];
  let slices: Uint8Array[] = [];
  let size = 0;
  for (let i = 0; i < changes.length; i += SLICE) {
    const slice = toBinary(CommitSchema, create(CommitSchema, { changes: changes.slice(i, i + SLICE) }));
    slices.push(slice);
    size += slice.byteLength;
    if (size >= partBytes) {
      parts.push(await blobs.put(Buffer.concat(slices), signal));
      [slices, size] = [[], 0];
    }
    await turn();
  }
  if (size > 0) parts.push(await blobs.put(Buffer.concat(slices), signal));
  return parts;
}

/** A scheduler that was stopped for long must not put an older manifest over a newer one: the log between is gone. */
async function replaceManifest(
  bus: Bus,
  blobs: BlobStore,
  manifest: SnapshotManifest,
  signal: AbortSignal,
): Promise<SnapshotManifest | undefined> {
  for (;;) {
    const old = await readManifest(bus, signal);
    if (old !== undefined && equals(SnapshotManifestSchema, old.manifest, manifest)) return undefined;
    if (old !== undefined && old.manifest.seq >= manifest.seq) {
      throw new PolarError('STATE_FENCED', `a snapshot of commit ${old.manifest.seq} is there already`);
    }
    try {
      await publish(bus, blobs, subjects.snapshot, toBinary(SnapshotManifestSchema, manifest), {
        behind: old?.at ?? 0,
        signal,
      });
      return old?.manifest;
    } catch (error) {
      // Another manifest came first, or the reply to our own was lost: look again.
      if (asPolarError(error).reason !== 'STATE_FENCED') throw error;
    }
  }
}
