// The lease of a session that is open here: it is renewed for as long as this process lives.
import type { Client } from '@connectrpc/connect';
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';

/** Renewals within one lease: single ones may fail. */
const IN_A_LEASE = 3;

/** Until it is disposed of; without a lease nothing is said. */
export function renewed(
  client: Pick<Client<typeof RolloutService>, 'renewSession'>,
  session: Session | undefined,
  leaseMs: number,
): Disposable {
  if (session === undefined || leaseMs === 0) return { [Symbol.dispose]: () => {} };
  const { sessionId, attempt } = session;
  const stop = new AbortController();
  // What went wrong is told when it is closed.
  const renew = (): void =>
    void client
      .renewSession({ sessionId, attempt }, { signal: stop.signal, timeoutMs: leaseMs })
      .catch(() => {});
  const timer = setInterval(renew, leaseMs / IN_A_LEASE);
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      stop.abort();
    },
  };
}
