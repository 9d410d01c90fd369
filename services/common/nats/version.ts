// Which servers will do.
import type { ServerInfo } from 'nats';
import { PolarError } from '../errors.ts';

/** Since then one question is answered with several messages; older servers answer with one, and no word of the end. */
const VERSION_MIN = [2, 11] as const;

/** Throws NATS_UNAVAILABLE for one that is too old, which would leave sessions without their records. */
export function checkVersion({ version = '' }: Partial<ServerInfo> = {}, shown: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > VERSION_MIN[0] || (major === VERSION_MIN[0] && minor >= VERSION_MIN[1])) return;
  throw new PolarError(
    'NATS_UNAVAILABLE',
    `NATS at ${shown} is version ${version}, and ${VERSION_MIN.join('.')} or later is needed: start that, or set POLAR_NATS_URL or nats.url to one`,
  );
}
