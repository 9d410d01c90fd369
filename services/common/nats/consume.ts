// Pull consumers: bounded handlers, `working()` while they run, an explicit dead letter at the delivery limit.
import type { ConsumerConfig, ConsumerInfo } from 'nats';
import { Semaphore, sleep } from '../clock.ts';
import { asPolarError, PolarError } from '../errors.ts';
import {
  PULL_MESSAGES_MAX,
  WORK_ACK_WAIT_MS,
  WORK_DELIVERIES_MAX,
  WORK_PULL_MS,
  WORK_RETRY_PAUSE_MS,
} from '../limits.ts';
import type { Logger } from '../logger.ts';
import { type BlobStore, removeBlob } from './blobs.ts';
import type { Bus } from './bus.ts';
import { checkOut, claimOf, publish, withRetry } from './publish.ts';
import { type PulledMessage, Pulls } from './pulls.ts';
import { subjects } from './subjects.ts';

export interface Delivery {
  readonly bytes: Uint8Array;
  readonly subject: string;
  readonly seq: number;
  /** Starting at 1, anew where NATS was started anew. */
  readonly deliveryCount: number;
  /** It may have been delivered before. */
  readonly again: boolean;
}

export interface ConsumeOptions {
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly log: Logger;
  readonly stream: string;
  readonly consumer: Partial<ConsumerConfig>;
  /** Handlers at once; what else there is waits in the stream. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
  /**
   * Done: acknowledged. A retryable PolarError: comes again after a pause. Anything else, or the last delivery:
   * `onDead` runs (publish the fact that ends the attempt there), then the message goes to POLAR_DEAD. `onDead` runs, too,
   * with BLOB_MISSING and the message's outline, where its blob is gone; that may be because it was done before.
   */
  readonly handle: (delivery: Delivery, signal: AbortSignal) => Promise<void>;
  readonly onDead?: (delivery: Delivery, error: PolarError) => Promise<void>;
  /** The messages stay in the stream for others, and so does what they stand for; else it is removed with them. */
  readonly keepsClaims?: boolean;
  /** Deliveries before the dead letter; default WORK_DELIVERIES_MAX. */
  readonly deliveriesMax?: number;
}

/** Pull until the signal aborts. Resolves when all handlers have ended. */
export async function consume(options: ConsumeOptions): Promise<void> {
  const { signal, log, stream } = options;
  const slots = new Semaphore(options.concurrency);
  const inHand = new Map<string, InHand>();
  while (!signal.aborted) {
    try {
      using pulls = await open(options);
      while (!signal.aborted && !pulls.isOld) await pull(pulls, options, slots, inHand);
    } catch (error) {
      if (!signal.aborted) log.warn({ stream, err: error }, 'consumer interrupted');
      // Somebody has to change it: that is said now and then.
      const differs = asPolarError(error).reason === 'STREAM_DIFFERS';
      await sleep(differs ? WORK_PULL_MS : WORK_RETRY_PAUSE_MS, signal);
    }
  }
  await Promise.allSettled([...inHand.values()].map(({ settled }) => settled));
}

/** A message whose handler runs, as it was delivered last: that delivery is acknowledged. */
interface InHand {
  message: PulledMessage;
  settled: Promise<void>;
}

/** Messages are asked for only for handlers that are free: one that waited here would be delivered again meanwhile. */
async function pull(
  pulls: Pulls,
  options: ConsumeOptions,
  slots: Semaphore,
  inHand: Map<string, InHand>,
): Promise<void> {
  const { signal } = options;
  await slots.acquire();
  let free = 1;
  while (free < PULL_MESSAGES_MAX && slots.tryAcquire()) free++;
  const take = (message: PulledMessage): void => {
    free--;
    const known = inHand.get(message.id);
    if (known !== undefined) {
      // NATS was started anew, or this process stood still: it has one handler all the same, which goes on.
      known.message = message;
      slots.release();
      return;
    }
    const held: InHand = { message, settled: Promise.resolve() };
    inHand.set(message.id, held);
    held.settled = settle(held, options).finally(() => {
      inHand.delete(message.id);
      slots.release();
    });
  };
  try {
    if (!signal.aborted && !pulls.isOld) await pulls.pull(free, take, signal);
  } finally {
    for (; free > 0; free--) slots.release();
  }
}

async function open({ bus, stream, consumer, signal }: ConsumeOptions): Promise<Pulls> {
  const durable = consumer.durable_name as string;
  const { created } = await withRetry(`consumer ${durable}`, signal, () => declare(bus, stream, consumer));
  return new Pulls(bus, stream, durable, Date.parse(created));
}

/** The client has the action; its published type does not say so. */
interface Declare {
  add(
    stream: string,
    consumer: Partial<ConsumerConfig>,
    action: '' | 'create' | 'update',
  ): Promise<ConsumerInfo>;
}

/** One that is there may be of a node with other slots, or of an older mesh: it is made what is asked for. */
async function declare(bus: Bus, stream: string, consumer: Partial<ConsumerConfig>): Promise<ConsumerInfo> {
  const add = (): Promise<ConsumerInfo> => (bus.jsm.consumers as Declare).add(stream, consumer, '');
  try {
    // Create or update.
    return await add();
  } catch (error) {
    const { message } = asPolarError(error);
    if (/storage type can not be updated/.test(message)) {
      // Of a mesh whose consumers lay in files: a new one is given all that is not done.
      await bus.jsm.consumers.delete(stream, consumer.durable_name as string);
      return await add();
    }
    if (!/can not be updated/.test(message)) throw error;
    throw new PolarError(
      'STREAM_DIFFERS',
      `consumer ${consumer.durable_name} of stream ${stream} exists with other settings: ${message}. Delete it with the nats tool: it is made anew, and its messages stay`,
      { cause: error },
    );
  }
}

async function settle(held: InHand, options: ConsumeOptions): Promise<void> {
  const { log, stream } = options;
  const tick = setInterval(() => held.message.working(), WORK_ACK_WAIT_MS / 3);
  try {
    await take(held, options);
  } catch (error) {
    // The server or the blob store is away: the message comes again by itself.
    log.warn({ stream, err: error }, 'delivery left for redelivery');
  } finally {
    clearInterval(tick);
  }
}

async function take(held: InHand, options: ConsumeOptions): Promise<void> {
  const { blobs, bus, signal, handle } = options;
  const { message } = held;
  const { data, subject, seq, deliveryCount, again } = message;
  let bytes: Uint8Array;
  try {
    bytes = await checkOut(blobs, message, signal);
  } catch (error) {
    if (!again || asPolarError(error).reason !== 'BLOB_MISSING') throw error;
    const outline: Delivery = { bytes: data, subject, seq, deliveryCount, again };
    return await gone(held, outline, asPolarError(error), options);
  }
  const delivery: Delivery = { bytes, subject, seq, deliveryCount, again };
  try {
    await handle(delivery, signal);
    bus.acks.later(() => done(held, options));
  } catch (error) {
    await failed(held, delivery, asPolarError(error), options);
  }
}

/** It was done before, and NATS does not know: what it stood for went with it. Or that was lost. */
async function gone(
  held: InHand,
  delivery: Delivery,
  error: PolarError,
  { log, stream, onDead }: ConsumeOptions,
): Promise<void> {
  const { subject, seq } = delivery;
  log.warn(
    { stream, subject, seq, err: error },
    'the blob of a message is gone: it was done before, or is lost',
  );
  await onDead?.(delivery, error);
  held.message.term();
}

/** What a message stands for is its own: it names an attempt. Where it cannot be removed now, it stays. */
function done({ message }: InHand, { bus, signal, keepsClaims = false }: ConsumeOptions): void {
  message.ack();
  const sha256 = claimOf(message.headers);
  if (sha256 !== undefined && !keepsClaims) void removeBlob(bus, sha256, signal).catch(() => {});
}

async function failed(
  held: InHand,
  delivery: Delivery,
  error: PolarError,
  options: ConsumeOptions,
): Promise<void> {
  const { bus, blobs, log, stream, signal } = options;
  // A stopping service leaves its work to be delivered to the next one.
  if (signal.aborted) return held.message.nak(WORK_RETRY_PAUSE_MS);
  const last = delivery.deliveryCount >= (options.deliveriesMax ?? WORK_DELIVERIES_MAX);
  if (error.retryable && !last) {
    log.warn(
      { stream, reason: error.reason, delivery: delivery.deliveryCount, err: error },
      'work failed, will retry',
    );
    return held.message.nak(WORK_RETRY_PAUSE_MS * delivery.deliveryCount);
  }
  log.error({ stream, reason: error.reason, err: error }, 'work dead-lettered');
  await options.onDead?.(delivery, error);
  try {
    await publish(bus, blobs, subjects.dead(stream), delivery.bytes, { signal });
  } catch (thrown) {
    // Without room for it, it would come again and again; what follows from it is done.
    if (asPolarError(thrown).reason !== 'NATS_STORE_FULL') throw thrown;
    log.error({ stream, err: thrown }, 'there is no room for a dead letter');
  }
  held.message.term();
}
