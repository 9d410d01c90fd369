// Calls of the scheduler that leads, wherever that is now: the lease names it.
import type { Client } from '@connectrpc/connect';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { type Credentials, createPlainClient } from './client.ts';
import { sleep } from './clock.ts';
import { asPolarError } from './errors.ts';
import { LEASE_POLL_MS, TAKE_OVER_WAIT_MS } from './limits.ts';
import type { Bus } from './nats/bus.ts';
import { LEASE_KEY, leaderIn } from './nats/leader.ts';

/** The call is made again while another scheduler takes over. */
export type AskScheduler = <T>(
  call: (scheduler: Client<typeof RolloutService>) => Promise<T>,
  signal: AbortSignal,
) => Promise<T>;

/** `configured` is where one is asked if nobody has the lease. */
export function createScheduler(bus: Bus, configured: string, credentials: Credentials): AskScheduler {
  return async (call, signal) => {
    const until = performance.now() + TAKE_OVER_WAIT_MS;
    for (;;) {
      const leader = await leaderOf(bus);
      try {
        return await call(createPlainClient(RolloutService, leader ?? configured, credentials));
      } catch (error) {
        const { reason } = asPolarError(error);
        const takenOver = leader !== undefined && (reason === 'NOT_LEADER' || reason === 'NODE_LOST');
        if (!takenOver || signal.aborted || performance.now() > until) throw error;
      }
      await sleep(LEASE_POLL_MS, signal);
    }
  };
}

/** Its address; undefined where nobody leads or NATS does not tell. */
async function leaderOf(bus: Bus): Promise<string | undefined> {
  try {
    return leaderIn(await (await bus.kv('lease')).get(LEASE_KEY))?.publicUrl;
  } catch {
    return undefined;
  }
}
