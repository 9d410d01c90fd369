// The end of a session at the proxy, which may be restarting just then.
import type { Client } from '@connectrpc/connect';
import type { AttemptRef } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type {
  CloseSessionResponse,
  ProxyService,
} from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { Deadline, sleep } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { PROXY_CLOSE_PAUSE_MS, PROXY_CLOSE_TOTAL_MS } from '../../common/limits.ts';

export type ProxyClient = Client<typeof ProxyService>;

/** Close and get the range of records; `onRetry` hears of the first try that failed. Throws PROXY_CLOSE_FAILED. */
export async function closeSession(
  proxy: ProxyClient,
  { sessionId, attempt }: AttemptRef,
  onRetry: (error: PolarError) => void,
  signal: AbortSignal,
): Promise<CloseSessionResponse> {
  using deadline = new Deadline(PROXY_CLOSE_TOTAL_MS, signal);
  const limited = deadline.signal;
  let problem: PolarError | undefined;
  for (;;) {
    try {
      return await proxy.closeSession({ sessionId, attempt }, { signal: limited });
    } catch (thrown) {
      signal.throwIfAborted();
      const error = asPolarError(thrown);
      if (limited.aborted || !error.retryable) throw notClosed(problem ?? error);
      if (problem === undefined) onRetry(error);
      problem = error;
    }
    await sleep(PROXY_CLOSE_PAUSE_MS, limited);
  }
}

const notClosed = (cause: PolarError): PolarError =>
  new PolarError('PROXY_CLOSE_FAILED', `the LLM proxy did not close the session: ${cause.message}`, {
    cause,
  });
