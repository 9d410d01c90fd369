// A pull consumer for one reading, which its reader deletes: in memory, and without acknowledgements.
import { AckPolicy, type Consumer, type ConsumerConfig, type ConsumerInfo } from 'nats';
import type { Bus } from './bus.ts';
import { withRetry } from './publish.ts';

export interface TemporaryConsumer {
  /** As it was added. */
  readonly info: ConsumerInfo;
  readonly consumer: Consumer;
}

/** Added, or found by its name: a server that is busy answers late, and is asked again. Throws NATS_UNAVAILABLE. */
export function temporaryConsumer(
  bus: Bus,
  stream: string,
  config: Partial<ConsumerConfig> & { readonly name: string },
  signal: AbortSignal,
): Promise<TemporaryConsumer> {
  return withRetry(`look at ${stream}`, signal, async () => {
    const whole = { ...config, ack_policy: AckPolicy.None, mem_storage: true };
    const info = await bus.jsm.consumers.add(stream, whole);
    return { info, consumer: await bus.js.consumers.get(stream, info.name) };
  });
}
