// Becoming the one writer: append an epoch, so that an older scheduler is refused from there on, then read what is below.
import { create, toBinary } from '@bufbuild/protobuf';
import { type Change, CommitSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { sleep } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { COMMITS_READ_AT_ONCE_MAX, PUBLISH_PAUSE_MS, TAKE_OVER_TRIES_MAX } from '../../common/limits.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { withRetry } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { clock } from '../dispatch/clock.ts';
import { State } from '../domain/state.ts';
import { Chain, isMissing, lastSeqOf } from './chain.ts';
import { changesIn } from './changes.ts';
import { clockBefore } from './clock-before.ts';
import { readManifest, readSnapshot } from './snapshots.ts';

export interface TakenOver {
  readonly chain: Chain;
  readonly state: State;
  /** Sequence of our own epoch record. */
  readonly epoch: number;
  /** Commits read behind the snapshot. */
  readonly tail: number;
}

/** Throws STATE_FENCED or BLOB_MISSING after TAKE_OVER_TRIES_MAX tries, STATE_INVALID, NATS_UNAVAILABLE. */
export async function takeOver(
  bus: Bus,
  blobs: BlobStore,
  holder: string,
  signal: AbortSignal,
): Promise<TakenOver> {
  const chain = await tries(signal, () => beginEpoch(bus, holder, signal));
  const epoch = chain.seq;
  const clockMs = await clockBefore(bus, epoch, signal);
  if (clockMs !== undefined) clock.goOn(clockMs);
  const { state, tail } = await tries(signal, () => rebuild(bus, blobs, epoch, signal));
  return { chain, state, epoch, tail };
}

/** Two schedulers that start at once may take each other's place, and an older one may purge what is being read. */
async function tries<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (let left = TAKE_OVER_TRIES_MAX; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      const { reason } = asPolarError(error);
      if (left === 1 || (reason !== 'STATE_FENCED' && reason !== 'BLOB_MISSING')) throw error;
    }
    await sleep(PUBLISH_PAUSE_MS, signal);
    signal.throwIfAborted();
  }
}

async function beginEpoch(bus: Bus, holder: string, signal: AbortSignal): Promise<Chain> {
  const last = await withRetry('state log', signal, () => lastSeqOf(bus));
  const chain = new Chain(bus, last);
  const commit = create(CommitSchema, {
    epoch: BigInt(last + 1),
    changes: [{ kind: { case: 'epochBegan', value: { holder } } }],
  });
  await chain.append(toBinary(CommitSchema, commit), `epoch:${holder}:${last}`, signal);
  return chain;
}

async function rebuild(
  bus: Bus,
  blobs: BlobStore,
  epoch: number,
  signal: AbortSignal,
): Promise<{ state: State; tail: number }> {
  const state = new State();
  const stored = await readManifest(bus, signal);
  if (stored !== undefined) {
    for await (const changes of readSnapshot(blobs, stored.manifest, signal)) {
      for (const change of changes) state.apply(change);
    }
  }
  const from = stored === undefined ? 1 : Number(stored.manifest.seq) + 1;
  for (let at = from; at < epoch; at += COMMITS_READ_AT_ONCE_MAX) {
    const count = Math.min(COMMITS_READ_AT_ONCE_MAX, epoch - at);
    const parts = await Promise.all(Array.from({ length: count }, (_, i) => readCommit(bus, at + i, signal)));
    for (const change of parts.flat()) state.apply(change);
  }
  return { state, tail: Math.max(0, epoch - from) };
}

async function readCommit(bus: Bus, seq: number, signal: AbortSignal): Promise<Change[]> {
  const bytes = await withRetry('read state log', signal, async () => {
    try {
      return (await bus.direct.getMessage(STREAMS.state.name, { seq })).data;
    } catch (error) {
      if (!isMissing(error)) throw error;
      throw new PolarError('BLOB_MISSING', `commit ${seq} is not in the state log`);
    }
  });
  return changesIn(bytes, `commit ${seq} of the state log`);
}
