// Which servers will do.
import { ErrorCode, NatsError, type ServerInfo } from 'nats';
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

/** What the first question to JetStream met, where there is none, as by nats-server's defaults; any other error as it is. */
export function jetStreamFault(error: unknown, shown: string): unknown {
  if (!(error instanceof NatsError) || error.code !== ErrorCode.JetStreamNotEnabled) return error;
  // One that keeps it from this account says so itself.
  const said = error.api_error?.description;
  const fault =
    said === undefined ? ' has no JetStream: start it with -js, or with deploy/nats.conf' : `: ${said}`;
  return new PolarError('NATS_UNAVAILABLE', `NATS at ${shown}${fault}`, { cause: error });
}
