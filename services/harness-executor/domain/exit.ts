// How the end of a harness is read.
import type { Failure } from '../../../gen/ts/polar/common/v1/failure_pb.js';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { ExecResult } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { failure } from '../../common/errors.ts';

/** COMPLETED has no failure; TIMEOUT and HARNESS_ERROR have one. */
export interface Exit {
  readonly outcome: Outcome.COMPLETED | Outcome.TIMEOUT | Outcome.HARNESS_ERROR;
  readonly failure?: Failure;
}

export type ExitFacts = Pick<
  ExecResult,
  'exitCode' | 'timedOut' | 'outOfMemory' | 'proxyConnectFailures' | 'proxyAway'
>;

/** The rule for a program whose exit code tells the truth. */
export function readExit({ exitCode, timedOut, outOfMemory }: ExitFacts): Exit {
  if (timedOut) {
    const message = 'the harness was still at work when its run budget was spent';
    return { outcome: Outcome.TIMEOUT, failure: failure('HARNESS_TIMEOUT', message) };
  }
  if (exitCode === 0) return { outcome: Outcome.COMPLETED };
  const why = outOfMemory ? ': it reached the memory limit of its runtime' : '';
  const message = `the harness ended with exit code ${exitCode}${why}; see its session logs`;
  return { outcome: Outcome.HARNESS_ERROR, failure: failure('HARNESS_EXIT', message) };
}

/**
 * The infrastructure failure that decided the run, if there was one. A harness whose last model call failed for good, or
 * did not get as far as the proxy, did not do what it would have done, even where it ends with 0: it is not graded. A
 * connection that failed before others were made explains an error exit only.
 */
export function infrastructureCause(
  exit: Exit,
  facts: ExitFacts,
  lastFailure: Failure | undefined,
): Failure | undefined {
  if (lastFailure?.infrastructure === true) return lastFailure;
  const { proxyAway, proxyConnectFailures } = facts;
  if (proxyAway)
    return failure(
      'PROXY_UNAVAILABLE',
      'the LLM proxy was away at the last try to reach it, or ended in the last call',
    );
  if (exit.outcome === Outcome.HARNESS_ERROR && proxyConnectFailures > 0) {
    return failure('PROXY_UNAVAILABLE', `${proxyConnectFailures} connection(s) to the LLM proxy failed`);
  }
  return undefined;
}
