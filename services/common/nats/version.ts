// Which servers will do.
import type { ServerInfo } from 'nats';
import { PolarError } from '../errors.ts';

/** Since then one question is answered with several messages; older servers answer with one, and no word of the end. */
const VERSION_MIN = [2, 11] as const;
/** What NATS takes by default. A record of the log that it does not take would be tried for ever, and all behind it wait. */
const MESSAGE_BYTES_MIN = 1024 * 1024;

/** Throws NATS_UNAVAILABLE for one that is too old, which would leave sessions without their records, or takes too little. */
export function checkServer(info: Partial<ServerInfo> = {}, shown: string): void {
  const { version = '', max_payload: bytesMax = 0 } = info;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const fault =
    major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])
      ? `is version ${version}, and ${VERSION_MIN.join('.')} or later is needed: start that`
      : bytesMax < MESSAGE_BYTES_MIN
        ? `takes messages of ${bytesMax} bytes, and ${MESSAGE_BYTES_MIN} are needed: raise max_payload in its configuration`
        : undefined;
  if (fault === undefined) return;
  throw new PolarError(
    'NATS_UNAVAILABLE',
    `NATS at ${shown} ${fault}, or set POLAR_NATS_URL or nats.url to another one`,
  );
}
