// Why a stream confirms nothing. A write that finds the disk full leaves nats-server (2.15) with a stream that takes no
// more, also when there is room again, until the server is started anew. It does not answer a publish there at all, and
// says why only to who asks it to purge.
import type { NatsConnection } from 'nats';
import { PolarError } from '../errors.ts';
import { PUBLISH_ACK_MS } from '../limits.ts';

/** JetStream's code for a purge that failed: without a write error, one of nothing does not. */
const PURGE_FAILED = 10051;
/** No message has it. */
const NO_SUBJECT = 'polar.v1.nothing';

interface Answer {
  readonly streams?: readonly string[] | null;
  readonly error?: { readonly err_code: number; readonly description: string };
}

/** NATS_STORE_FULL where the stream of a subject says so; undefined where it says nothing, as of a server that is away. */
export async function whyNotStored(nc: NatsConnection, subject: string): Promise<PolarError | undefined> {
  const ask = async (what: string, question: object): Promise<Answer> =>
    (await nc.request(`$JS.API.${what}`, JSON.stringify(question), { timeout: PUBLISH_ACK_MS })).json();
  try {
    const [stream] = (await ask('STREAM.NAMES', { subject })).streams ?? [];
    if (stream === undefined) return undefined;
    const { error } = await ask(`STREAM.PURGE.${stream}`, { filter: NO_SUBJECT });
    if (error?.err_code !== PURGE_FAILED) return undefined;
    return new PolarError(
      'NATS_STORE_FULL',
      `NATS stores nothing in ${stream} (${error.description}): make room, and start nats-server again; polar up does the second by itself`,
    );
  } catch {
    return undefined;
  }
}
