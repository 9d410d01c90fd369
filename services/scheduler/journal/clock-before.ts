// What the clock of the scheduler that led before says now. Its records are timed by that one, and ours may be minutes away or
// have been set since: what is between their times is measured by the clock of NATS, which has stamped all commits.
import { CommitSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { Bus } from '../../common/nats/bus.ts';
import { withRetry } from '../../common/nats/publish.ts';
import type { StoredMessage } from '../../common/nats/reads.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { fromStored } from '../../common/stored.ts';
import { isMissing } from './chain.ts';

/** Commits that are looked at: schedulers may have taken over one after the other, and committed nothing. */
const LOOKED_AT_MAX = 32;

/** Unix time in milliseconds; undefined where it is not known. `epoch`: sequence of our own first commit. */
export async function clockBefore(bus: Bus, epoch: number, signal: AbortSignal): Promise<number | undefined> {
  const own = await commitAt(bus, epoch, signal);
  for (let seq = epoch - 1; own !== undefined && seq > epoch - 1 - LOOKED_AT_MAX; seq--) {
    const last = await commitAt(bus, seq, signal);
    if (last === undefined) return undefined;
    const unixMs = timeIn(last.data);
    if (unixMs > 0n) return Number(unixMs) + Math.max(0, own.time.getTime() - last.time.getTime());
  }
  return undefined;
}

/** Of one that cannot be read it is told where its changes are read. */
function timeIn(bytes: Uint8Array): bigint {
  try {
    return fromStored(CommitSchema, bytes).unixMs;
  } catch {
    return 0n;
  }
}

async function commitAt(
  bus: Bus,
  seq: number,
  signal: AbortSignal,
): Promise<Pick<StoredMessage, 'data' | 'time'> | undefined> {
  return await withRetry('read state log', signal, async () => {
    try {
      return await bus.jsm.streams.getMessage(STREAMS.state.name, { seq });
    } catch (error) {
      if (isMissing(error) || seq < 1) return undefined;
      throw error;
    }
  });
}
