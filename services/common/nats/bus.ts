// The connection to NATS: everything JetStream goes through here, so that the client library is one folder's matter.
import {
  ErrorCode,
  type JetStreamClient,
  type JetStreamManager,
  type KV,
  type MsgHdrs,
  type NatsConnection,
  type NatsError,
  type StreamConfig,
} from 'nats';
import { settledWithin, sleep } from '../clock.ts';
import { type NatsCredentials, natsAddress } from '../config/nats.ts';
import { asPolarError, PolarError } from '../errors.ts';
import { NATS_FLUSH_MS, PUBLISH_ACK_MS } from '../limits.ts';
import type { Logger } from '../logger.ts';
import type { CertificateStore } from '../tls/certificates.ts';
import { Acks } from './acks.ts';
import { connectWithin, type Way, whyAway } from './connect.ts';
import { Connection } from './connection.ts';
import { authenticatorOf } from './credentials.ts';
import { jetstreamCode } from './publish.ts';
import { Reads } from './reads.ts';
import { Refusals } from './refusals.ts';
import { BUCKETS, STREAMS } from './streams.ts';
import { checkServer, jetStreamFault } from './version.ts';

/** How long streams are declared for; a try is given up after 5 s. */
const DECLARE_MS = 20_000;

/** Reads of single messages that need no consumer. */
export interface DirectReads {
  getMessage(
    stream: string,
    query: { seq: number } | { last_by_subj: string } | { next_by_subj: string; seq: number },
  ): Promise<{
    readonly data: Uint8Array;
    readonly seq: number;
    readonly subject: string;
    readonly header: MsgHdrs;
    /** When it was stored, by the clock of NATS. */
    readonly time: Date;
  }>;
}

export interface Bus {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly direct: DirectReads;
  /** Reads of messages that may be large. */
  readonly reads: Reads;
  /** Publishes that wait until they are stored, and what goes out with them. */
  readonly acks: Acks;
  /** What the server forbids. */
  readonly refusals: Refusals;
  readonly kv: (bucket: keyof typeof BUCKETS) => Promise<KV>;
  /** Sends what is buffered and closes. */
  close(): Promise<void>;
}

export interface BusOptions {
  /** One or more servers, comma separated. What it holds of a login is shown nowhere. */
  readonly url: string;
  /** In place of a login in the URL. */
  readonly credentials?: NatsCredentials | undefined;
  /** Shown by the server. */
  readonly name: string;
  /** Undefined: where the server asks for TLS, what the system trusts. */
  readonly tls?: CertificateStore | undefined;
  readonly signal?: AbortSignal;
  /** Told of a connection that is lost, and why it does not come back. */
  readonly log?: Logger;
}

/** Connect, and declare streams and buckets. Reconnects for ever afterwards; waits then show as failed publishes. */
export async function openBus(options: BusOptions): Promise<Bus> {
  const address = natsAddress(options.url);
  const credentials = options.credentials ?? address.credentials;
  const authenticator = credentials && authenticatorOf(credentials);
  const way: Way = { ...options, ...address, credentials, authenticator };
  const nc = await connectWithin(way);
  const connection = new Connection(nc, options.log, () => whyAway(way));
  const refusals = new Refusals(nc);
  try {
    checkServer(nc.info, address.shown);
    const js = nc.jetstream({ timeout: PUBLISH_ACK_MS });
    const ask = (): Promise<JetStreamManager> => nc.jetstreamManager({ timeout: 5_000 });
    const jsm = await patiently(ask, performance.now() + DECLARE_MS, options.signal).catch((error) => {
      throw jetStreamFault(error, address.shown);
    });
    await ensureStreams(jsm, options.signal);
    const buckets = new Map<string, Promise<KV>>();
    const kv = (bucket: keyof typeof BUCKETS): Promise<KV> => {
      const { name } = BUCKETS[bucket];
      let opened = buckets.get(name);
      opened ??= openBucket(js, jsm, BUCKETS[bucket]);
      buckets.set(name, opened);
      opened.catch(() => buckets.delete(name));
      return opened;
    };
    // The client has it; its published type does not say so.
    const { direct } = jsm as JetStreamManager & { direct: DirectReads };
    const reads = new Reads(nc, authenticator);
    const acks = new Acks(nc, refusals, connection);
    const close = async (): Promise<void> => {
      reads[Symbol.dispose]();
      acks.flush();
      await closeQuietly(nc);
    };
    return { nc, js, jsm, direct, reads, acks, refusals, kv, close };
  } catch (error) {
    await closeQuietly(nc);
    throw refusals.last ?? error;
  }
}

/** The server has it; the client's type does not say so. */
interface EndingMarks extends Partial<StreamConfig> {
  readonly allow_msg_ttl?: boolean;
}

/** JetStream's code of a stream that was made with other settings. */
const NAME_IN_USE = 10058;

interface BucketSpec {
  readonly name: string;
  readonly ttlMs?: number;
  readonly marksEnd?: boolean;
}

async function openBucket(
  js: JetStreamClient,
  jsm: JetStreamManager,
  { name, ttlMs = 0, marksEnd = false }: BucketSpec,
): Promise<KV> {
  const open = (): Promise<KV> => js.views.kv(name, { history: 1, ...(ttlMs > 0 && { ttl: ttlMs }) });
  const kv = await open().catch((error: unknown) => {
    if (jetstreamCode(error) !== NAME_IN_USE) throw error;
    // Another service has made it since it was looked for, and let its marks end: now it is found.
    return open();
  });
  if (!marksEnd) return kv;
  const stream = `KV_${name}`;
  const config: EndingMarks = (await jsm.streams.info(stream)).config;
  if (config.allow_msg_ttl !== true) {
    const ending: EndingMarks = { allow_msg_ttl: true };
    await jsm.streams.update(stream, ending);
  }
  return kv;
}

/** What was published goes out; a subscription that waits for messages, as of a watched bucket, is not waited for. */
async function closeQuietly(nc: NatsConnection): Promise<void> {
  if (nc.isClosed()) return;
  await settledWithin(nc.flush(), NATS_FLUSH_MS);
  await nc.close().catch(() => {});
}

/** Create what is missing; refuse what is there with other settings. */
async function ensureStreams(jsm: JetStreamManager, signal: AbortSignal | undefined): Promise<void> {
  const until = performance.now() + DECLARE_MS;
  const all = Object.values(STREAMS).map((spec) => patiently(() => ensureStream(jsm, spec), until, signal));
  const results = await Promise.allSettled(all);
  for (const result of results) if (result.status === 'rejected') throw declared(result.reason);
}

/** JetStream's code of a cluster that has no leader, as while its servers start. */
const NO_LEADER = 10008;
const ELECTION_PAUSE_MS = 250;

/** A server whose disk is busy answers late, and a cluster that elects has no answer: it is asked again until `until`. */
async function patiently<T>(
  ask: () => Promise<T>,
  until: number,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const elects = jetstreamCode(error) === NO_LEADER;
      if (!elects && (error as NatsError).code !== ErrorCode.Timeout) throw error;
      signal?.throwIfAborted();
      if (performance.now() > until) {
        const message = elects
          ? `JetStream has had no leader for ${DECLARE_MS} ms: start most servers of its cluster`
          : `the NATS server says nothing of its streams within ${DECLARE_MS} ms`;
        throw new PolarError('NATS_UNAVAILABLE', message, { cause: error });
      }
      if (elects) await sleep(ELECTION_PAUSE_MS, signal);
    }
  }
}

function declared(error: unknown): PolarError {
  const { message } = asPolarError(error);
  if (!/insufficient storage/.test(message)) return asPolarError(error);
  return new PolarError(
    'NATS_STORE_FULL',
    'the NATS server cannot reserve 22 GiB for the streams: raise max_file_store in its configuration, or point nats.url at another server',
    { cause: error },
  );
}

async function ensureStream(
  jsm: JetStreamManager,
  spec: Partial<StreamConfig> & { name: string },
): Promise<void> {
  const found = await jsm.streams.info(spec.name).catch((error: Error) => {
    if (/stream not found/.test(error.message)) return undefined;
    throw error;
  });
  if (found === undefined) {
    // Two services may boot at once: an equal stream is answered with success.
    await jsm.streams.add(spec);
    return;
  }
  const config = found.config as unknown as Record<string, unknown>;
  const other = Object.entries(spec).filter(
    ([key, value]) => JSON.stringify(config[key]) !== JSON.stringify(value),
  );
  if (other.length > 0) {
    throw new PolarError(
      'STREAM_DIFFERS',
      `stream ${spec.name} exists with other settings: ${other
        .map(([key, value]) => `${key} is ${JSON.stringify(config[key])}, declared ${JSON.stringify(value)}`)
        .join('; ')}. Change it with the nats tool, or point nats.url at another server`,
    );
  }
}
