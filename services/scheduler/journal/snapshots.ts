// Snapshots of the state: the state as one blob, then the manifest that makes it count, then the log below it goes.
import { setImmediate as turn } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type Change,
  CommitSchema,
  type SnapshotManifest,
  SnapshotManifestSchema,
} from '../../../gen/ts/polar/event/v1/state_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { type BlobStore, removeBlob } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { publish, withRetry } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { isMissing } from './chain.ts';

/** Changes encoded between two turns of the event loop. */
const SLICE = 256;

export interface StoredManifest {
  readonly manifest: SnapshotManifest;
  /** Its own sequence in the snapshot stream. */
  readonly at: number;
}

/** The manifest that counts, if there is one. */
export async function readManifest(bus: Bus, signal: AbortSignal): Promise<StoredManifest | undefined> {
  return await withRetry('read snapshot', signal, async () => {
    try {
      const stored = await bus.jsm.streams.getMessage(STREAMS.snapshot.name, {
        last_by_subj: subjects.snapshot,
      });
      return { manifest: fromBinary(SnapshotManifestSchema, stored.data), at: stored.seq };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  });
}

/** The changes of a snapshot. Throws BLOB_MISSING, also when a newer snapshot has replaced it meanwhile. */
export async function readSnapshot(
  blobs: BlobStore,
  { state }: SnapshotManifest,
  signal: AbortSignal,
): Promise<Change[]> {
  if (state === undefined) throw new PolarError('BLOB_MISSING', 'the snapshot manifest names no state');
  return fromBinary(CommitSchema, await blobs.get(state, signal)).changes;
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
): Promise<number> {
  const slices: Uint8Array[] = [];
  for (let i = 0; i < changes.length; i += SLICE) {
    const slice = create(CommitSchema, { changes: changes.slice(i, i + SLICE) });
    slices.push(toBinary(CommitSchema, slice));
    await turn();
  }
  const bytes = Buffer.concat(slices);
  const state = await blobs.put(bytes, signal);
  const manifest = create(SnapshotManifestSchema, { seq: BigInt(seq), state });
  const old = await replaceManifest(bus, blobs, manifest, signal);
  await withRetry('purge state log', signal, () => bus.jsm.streams.purge(STREAMS.state.name, { seq }));
  const oldDigest = old?.state?.sha256 ?? state.sha256;
  if (oldDigest !== state.sha256) await removeBlob(bus, oldDigest, signal);
  return bytes.byteLength;
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
    const same = old?.manifest.state?.sha256 === manifest.state?.sha256;
    if (old !== undefined && same && old.manifest.seq === manifest.seq) return undefined;
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
