// From process start to process end, the same for every service.
import process from 'node:process';
import { asPolarError, PolarError } from './errors.ts';
import { exitCodeOf } from './exit-codes.ts';
import { STOP_FORCE_MS } from './limits.ts';
import type { Logger } from './logger.ts';

export interface RunningService extends AsyncDisposable {
  /** Rejects when the service cannot go on; never resolves. */
  readonly failed: Promise<never>;
}

/** What a service is configured with. Where that is faulty the process ends, and says so as for any other failure. */
export function configured<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    tellFailure(error);
    process.exit(exitCodeOf(error));
  }
}

/**
 * Start a service, wait for SIGTERM, SIGINT, the end of the lifeline or a failure, stop it.
 * The lifeline is standard input, where POLAR_LIFELINE=stdin: its writer holds it open while it lives, so that a
 * service ends with its supervisor even when that is killed.
 */
export async function runService(
  log: Logger,
  lifeline: boolean,
  start: (signal: AbortSignal) => Promise<RunningService>,
): Promise<void> {
  const stop = new AbortController();
  const asked = stopRequest(lifeline);
  let wasRunning = false;
  try {
    const starting = start(stop.signal);
    const service = await Promise.race([starting, asked]);
    wasRunning = service !== undefined;
    try {
      if (service !== undefined) await Promise.race([asked, service.failed]);
    } finally {
      setTimeout(() => process.exit(process.exitCode ?? 1), STOP_FORCE_MS).unref();
      stop.abort(new PolarError('SHUTTING_DOWN', `${log.bindings()['service']} is stopping`));
      // One that was asked to stop while it started has nothing to tell of how that ended.
      const started = service ?? (await starting.catch(() => undefined));
      await started?.[Symbol.asyncDispose]();
    }
  } catch (error) {
    const { reason, message } = asPolarError(error);
    // The place in the code says something of a fault of the program alone; who starts a service reads what is told below.
    if (reason === 'INTERNAL') log.fatal({ reason, err: error }, 'service failed');
    else if (wasRunning) log.fatal({ reason, message }, 'service failed');
    tellFailure(error);
    const code = exitCodeOf(error);
    process.exitCode = code;
    setTimeout(() => process.exit(code), STOP_FORCE_MS).unref();
  } finally {
    if (lifeline) process.stdin.destroy();
  }
}

/** In a form of which `polar up` reads the reason. */
function tellFailure(error: unknown): void {
  const { reason, message } = asPolarError(error);
  process.stderr.write(`polar: ${reason}: ${message}\n`);
}

function stopRequest(lifeline: boolean): Promise<undefined> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(undefined));
    if (!lifeline) return;
    process.stdin.once('end', () => resolve(undefined));
    process.stdin.once('error', () => resolve(undefined));
    process.stdin.resume();
  });
}
