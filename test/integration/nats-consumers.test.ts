// Durable consumers that are there already, with other settings than those that are asked for.
import { expect } from 'chai';
import { type ConsumerConfig, ReplayPolicy } from 'nats';
import { asPolarError } from '../../services/common/errors.ts';
import { createLogger, type Logger } from '../../services/common/logger.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { consume } from '../../services/common/nats/consume.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { CONSUMERS, STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { eventually } from '../support/eventually.ts';
import { startNats, type TestNats } from '../support/nats.ts';

const silent = createLogger('test', 'silent');

describe('a durable consumer', () => {
  let nats: TestNats;
  let bus: Bus;
  before(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
  });
  after(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  /** Consumes one piece of work, or until something is warned of; tells what. */
  async function take(node: string, consumer: Partial<ConsumerConfig>): Promise<string[]> {
    const told: string[] = [];
    const stop = new AbortController();
    const blobs = createBlobStore(bus);
    const warn = ({ err }: { err: unknown }): void => {
      const { reason, message } = asPolarError(err);
      told.push(`${reason}: ${message}`);
    };
    const consuming = consume({
      ...{ bus, blobs, consumer, concurrency: 1, signal: stop.signal, stream: STREAMS.work.name },
      log: Object.assign(Object.create(silent), { warn }) as Logger,
      handle: async () => void told.push('handled'),
    });
    await publish(bus, blobs, subjects.work('prepare', node), Buffer.from('work'));
    await eventually('it is handled or refused', () => told.length > 0);
    stop.abort();
    await consuming;
    return told;
  }

  it('gives its work whatever the slots of its node, and the time for an acknowledgement, were before', async () => {
    const few = CONSUMERS.work('prepare', 'n1', 4);
    const many = CONSUMERS.work('prepare', 'n1', 20);
    for (const asked of [few, many, few, { ...few, ack_wait: 20e9 }]) {
      expect(await take('n1', asked)).to.deep.equal(['handled']);
      const { config } = await bus.jsm.consumers.info(STREAMS.work.name, 'prepare-n1');
      expect(config).to.include({ max_ack_pending: asked.max_ack_pending, ack_wait: asked.ack_wait });
    }
  }).timeout(60_000);

  it('that is there with what cannot be changed is told of by its name, at once', async () => {
    const asked = CONSUMERS.work('prepare', 'n2', 4);
    await bus.jsm.consumers.add(STREAMS.work.name, { ...asked, replay_policy: ReplayPolicy.Original });
    const [told] = await take('n2', asked);
    expect(told).to.match(/^STREAM_DIFFERS: consumer prepare-n2 of stream POLAR_WORK .*replay policy/);
  });

  it('that lies in a file, as those of older meshes, is made anew in memory, and its work stays', async () => {
    const asked = CONSUMERS.work('prepare', 'n3', 4);
    await bus.jsm.consumers.add(STREAMS.work.name, { ...asked, mem_storage: false });
    expect(await take('n3', asked)).to.deep.equal(['handled']);
    const { config } = await bus.jsm.consumers.info(STREAMS.work.name, 'prepare-n3');
    expect(config.mem_storage).to.equal(true);
  });

  it('is made anew when NATS was killed: what is in hand goes on, and is acknowledged where it was given again', async () => {
    const given: boolean[] = [];
    const stop = new AbortController();
    const release = Promise.withResolvers<void>();
    const consuming = consume({
      ...{ bus, blobs: createBlobStore(bus), log: silent, concurrency: 2, signal: stop.signal },
      ...{ stream: STREAMS.work.name, consumer: CONSUMERS.work('prepare', 'n4', 2) },
      handle: async ({ again }) => {
        given.push(again);
        await release.promise;
      },
    });
    await isThere('prepare-n4');
    await send('n4');
    await eventually('it is given', () => given.length === 1);
    await nats.kill();
    await nats.start();
    // What is asked while a connection comes back is lost, and waited for.
    const looking = await openBus({ url: nats.url, name: 'looking' });
    await eventually('it is given again', async () => (await outOf('prepare-n4', looking)) === 1);
    await looking.close();
    expect(given).to.deep.equal([false]);
    release.resolve();
    await eventually('it is done', async () => (await left()) === 0);
    await send('n4');
    await eventually('a new one is given, and done', async () => given.length === 2 && (await left()) === 0);
    stop.abort();
    await consuming;
    expect(given).to.deep.equal([false, false]);
  }).timeout(60_000);

  it('says of what is older than itself that it may have been given before', async () => {
    await send('n5');
    const given: boolean[] = [];
    const stop = new AbortController();
    const consuming = consume({
      ...{ bus, blobs: createBlobStore(bus), log: silent, concurrency: 1, signal: stop.signal },
      ...{ stream: STREAMS.work.name, consumer: CONSUMERS.work('prepare', 'n5', 2) },
      handle: async ({ again }) => void given.push(again),
    });
    await eventually('it is given', () => given.length === 1);
    await send('n5');
    await eventually('a new one is given', () => given.length === 2);
    stop.abort();
    await consuming;
    expect(given).to.deep.equal([true, false]);
  });

  const send = (node: string) =>
    publish(bus, createBlobStore(bus), subjects.work('prepare', node), Buffer.from('work'));
  const left = async (): Promise<number> => {
    const subject = subjects.work('prepare', 'n4');
    const { state } = await bus.jsm.streams.info(STREAMS.work.name, { subjects_filter: subject });
    return state.subjects?.[subject] ?? 0;
  };
  const outOf = (durable: string, { jsm } = bus): Promise<number> =>
    jsm.consumers.info(STREAMS.work.name, durable).then(
      ({ num_ack_pending: count }) => count,
      () => -1,
    );
  const isThere = (durable: string) =>
    eventually('the consumer is there', async () => (await outOf(durable)) >= 0);
});
