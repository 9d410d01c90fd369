// The end of a session, as schedulers before the engines are told it.
import type { Logger } from '../../common/logger.ts';
import type { AttemptKey } from '../attempts/record-log.ts';
import { sessionNotEnded } from '../events.ts';
import type { Engines } from './engines.ts';

/** No call of the attempt will follow; nobody waits for it to be told. */
export function endSession(engines: Engines, log: Logger, key: AttemptKey): void {
  engines.endSession(key).catch((error) => sessionNotEnded(log, key, error));
}
