// Making a connection to NATS, and why none comes about.
import { type Authenticator, type ConnectionOptions, connect, type NatsConnection } from 'nats';
import { sleep } from '../clock.ts';
import type { NatsAddress } from '../config/nats.ts';
import { PolarError } from '../errors.ts';
import { NATS_BOOT_MS } from '../limits.ts';
import type { CertificateStore } from '../tls/certificates.ts';
import { loginFault } from './credentials.ts';
import { natsTlsFault, natsTlsOptions, refusalOf } from './tls.ts';

/** One try. */
const CONNECT_MS = 2_000;

/** Where to, and with what. */
export interface Way extends NatsAddress {
  readonly authenticator: Authenticator | undefined;
  /** Shown by the server. */
  readonly name: string;
  readonly tls?: CertificateStore | undefined;
  readonly signal?: AbortSignal;
}

const optionsOf = ({ servers, name, tls, authenticator }: Way): ConnectionOptions => ({
  servers: [...servers],
  name,
  ...(tls !== undefined && { tls: natsTlsOptions(tls, servers) }),
  ...(authenticator !== undefined && { authenticator }),
  timeout: CONNECT_MS,
});

/** Tries for NATS_BOOT_MS; once it is there, it comes back for ever. */
export async function connectWithin(way: Way): Promise<NatsConnection> {
  const until = performance.now() + NATS_BOOT_MS;
  for (;;) {
    try {
      return await connect({
        ...optionsOf(way),
        // A login that is changed, here or there, may be good again.
        ignoreAuthErrorAbort: true,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 100,
        reconnectJitter: 50,
        pingInterval: 10_000,
      });
    } catch (error) {
      way.signal?.throwIfAborted();
      const fault = await faultOf(way, error);
      if (fault !== undefined) throw fault;
      if (performance.now() > until) {
        throw new PolarError(
          'NATS_UNAVAILABLE',
          `no NATS server answers at ${way.shown}: start one, or set POLAR_NATS_URL or nats.url to one that runs (JetStream on)`,
          { cause: error },
        );
      }
      await sleep(100, way.signal);
    }
  }
}

/** Why no connection comes about now, by one try; undefined: it does. */
export async function whyAway(way: Way): Promise<string | undefined> {
  try {
    await (await connect({ ...optionsOf(way), reconnect: false })).close();
    return undefined;
  } catch (error) {
    const { message } = (await faultOf(way, error)) ?? (error as Error);
    return message.includes(way.shown) ? message : `NATS at ${way.shown}: ${message}`;
  }
}

/** TLS_FAILED, NATS_REFUSED; undefined: what passes by itself. */
async function faultOf(
  { tls, servers, shown, credentials }: Way,
  error: unknown,
): Promise<PolarError | undefined> {
  const fault = natsTlsFault(error) ?? (tls && (await refusalOf(tls, servers, error)));
  if (fault !== undefined)
    return new PolarError('TLS_FAILED', `NATS at ${shown}: ${fault}`, { cause: error });
  const refused = loginFault(error, credentials);
  if (refused === undefined) return undefined;
  return new PolarError('NATS_REFUSED', `NATS at ${shown}: ${refused}`, { cause: error });
}
