// The NATS layer against a real server: durable publishes, claim checks, retries, dead letters, a killed server.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect } from 'chai';
import { nanos } from 'nats';
import { sleep } from '../../services/common/clock.ts';
import { PolarError } from '../../services/common/errors.ts';
import { sha256 } from '../../services/common/ids.ts';
import { BLOB_CHUNK_BYTES, INLINE_BYTES_MAX, PUBLISH_ACK_MS } from '../../services/common/limits.ts';
import { createLogger } from '../../services/common/logger.ts';
import {
  type BlobStore,
  createBlobStore,
  removeBlob,
  removeOldBlob,
} from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { consume, type Delivery } from '../../services/common/nats/consume.ts';
import { checkOut, deleteKey, endingAfter, publish } from '../../services/common/nats/publish.ts';
import { CONSUMERS, STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { eventually } from '../support/eventually.ts';
import { startNats, type TestNats } from '../support/nats.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const log = createLogger('test', 'silent');

describe('nats', () => {
  let nats: TestNats;
  let bus: Bus;
  let blobs: BlobStore;
  before(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
    blobs = createBlobStore(bus);
  });
  after(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  it('declares all streams once, and again without a change', async () => {
    const again = await openBus({ url: nats.url, name: 'again' });
    const names = (await again.jsm.streams.list().next()).map((stream) => stream.config.name).sort();
    await again.close();
    expect(names).to.include.members(Object.values(STREAMS).map((stream) => stream.name));
  });

  it('refuses a stream that is there with other settings, and names the setting', async () => {
    await using other = await startNats();
    const first = await openBus({ url: other.url, name: 'first' });
    await first.jsm.streams.update(STREAMS.dead.name, { max_bytes: 12_345_678 });
    await first.close();
    const error = await openBus({ url: other.url, name: 'second' }).catch((reason) => reason);
    expect(error).to.be.instanceOf(PolarError);
    expect(error.reason).to.equal('STREAM_DIFFERS');
    expect(error.message).to.match(/POLAR_DEAD.*max_bytes/);
  });

  it('forgets that a credential was deleted, in a bucket that an older mesh made, too', async () => {
    await using other = await startNats();
    const older = await openBus({ url: other.url, name: 'older' });
    await older.js.views.kv('polar_capabilities', { history: 1, ttl: 3_600_000 });
    await older.close();
    const newer = await openBus({ url: other.url, name: 'newer' });
    const bucket = await newer.kv('capabilities');
    await newer.acks.store('$KV.polar_capabilities.s-0.1', bytes('credential'), endingAfter(1_000));
    await bucket.put('s-1.1', bytes('credential'));
    await deleteKey(newer, 'capabilities', 's-0.1', 1_000);
    expect((await bucket.get('s-0.1'))?.operation).to.equal('DEL');
    const keys = async (): Promise<number> => (await bucket.status().catch(() => undefined))?.values ?? 0;
    await eventually('its mark is gone', async () => (await keys()) === 1);
    await other.kill();
    await other.start();
    await eventually('nothing of it is there again', async () => (await keys()) === 1);
    expect(await bucket.get('s-0.1')).to.equal(null);
    await newer.close();
  });

  it('stores a create-once subject once', async () => {
    const subject = subjects.trajectory('once', 'g0');
    const first = await publish(bus, blobs, subject, bytes('a'), { createOnce: true });
    const second = await publish(bus, blobs, subject, bytes('b'), { createOnce: true });
    expect(first).to.be.greaterThan(0);
    expect(second).to.equal(0);
    const stored = await bus.direct.getMessage(STREAMS.trajectories.name, { last_by_subj: subject });
    expect(new TextDecoder().decode(stored.data)).to.equal('a');
  });

  it('moves a body above the inline limit through the blob store', async () => {
    const body = new Uint8Array(INLINE_BYTES_MAX + BLOB_CHUNK_BYTES + 7).map((_, i) => i % 251);
    const subject = subjects.trajectory('large', 'g0');
    await publish(bus, blobs, subject, body);
    const stored = await bus.direct.getMessage(STREAMS.trajectories.name, { last_by_subj: subject });
    expect(stored.data.byteLength).to.equal(0);
    const fetched = await checkOut(blobs, { data: stored.data, headers: stored.header });
    expect(Buffer.compare(fetched, body)).to.equal(0);
  });

  it('stores a blob once however often it is put: of one chunk in one message', async () => {
    const stored = async (sha256: string): Promise<number> => {
      const filter = { subjects_filter: subjects.blobParts(sha256) };
      const { state } = await bus.jsm.streams.info(STREAMS.blobs.name, filter);
      return Object.keys(state.subjects ?? {}).length;
    };
    for (const [size, messages] of [
      [0, 1],
      [BLOB_CHUNK_BYTES, 1],
      [BLOB_CHUNK_BYTES + 1, 3],
    ] as const) {
      const body = Buffer.alloc(size, 'b');
      const ref = await blobs.put(body);
      const { state } = await bus.jsm.streams.info(STREAMS.blobs.name);
      expect(await blobs.put(body)).to.deep.equal(ref);
      expect((await bus.jsm.streams.info(STREAMS.blobs.name)).state.messages).to.equal(state.messages);
      expect(await stored(ref.sha256), `${size} bytes`).to.equal(messages);
      expect(body.equals(await blobs.get(ref))).to.equal(true);
    }
  });

  it('removes a blob that was put long ago, and nothing of one that was put again since', async () => {
    const { signal } = new AbortController();
    const next = async () => (await bus.jsm.streams.info(STREAMS.blobs.name)).state.last_seq + 1;
    for (const size of [1_000, 3 * BLOB_CHUNK_BYTES]) {
      const body = randomBytes(size);
      const { sha256: digest, sizeBytes } = await blobs.put(body);
      const old = await next();
      await blobs.put(body);
      expect(await removeOldBlob(bus, digest, old, signal), `${size} put again`).to.equal(false);
      expect(body.equals(await blobs.get({ sha256: digest, sizeBytes }))).to.equal(true);
      expect(await removeOldBlob(bus, digest, await next(), signal), `${size}`).to.equal(true);
      const filter = { subjects_filter: subjects.blobParts(digest) };
      expect((await bus.jsm.streams.info(STREAMS.blobs.name, filter)).state.subjects).to.equal(undefined);
      // What a kill left of it is written anew, whole.
      await blobs.put(body);
      await bus.jsm.streams.purge(STREAMS.blobs.name, { filter: subjects.blobManifest(digest) });
      await blobs.put(body);
      expect(await removeOldBlob(bus, digest, old, signal)).to.equal(false);
      expect(body.equals(await blobs.get({ sha256: digest, sizeBytes }))).to.equal(true);
    }
  });

  it('loses no blob that is put while old ones are removed', async () => {
    const { signal } = new AbortController();
    const body = randomBytes(2 * BLOB_CHUNK_BYTES + 1);
    for (let i = 0; i < 30; i++) {
      const { sha256: digest } = await blobs.put(body);
      const old = (await bus.jsm.streams.info(STREAMS.blobs.name)).state.last_seq + 1;
      const [ref] = await Promise.all([blobs.put(body), removeOldBlob(bus, digest, old, signal)]);
      expect(body.equals(await blobs.get(ref)), `round ${i}`).to.equal(true);
    }
  });

  it('sends many blobs once each to a server that does not answer for a while', async () => {
    const sent = async () => (await bus.jsm.streams.info(STREAMS.blobs.name)).state.last_seq;
    const before = await sent();
    const bodies = Array.from({ length: 16 }, (_, i) => Buffer.alloc(BLOB_CHUNK_BYTES, `paused ${i}`));
    process.kill(nats.pid, 'SIGSTOP');
    try {
      const puts = Promise.all(bodies.map((body) => blobs.put(body)));
      await sleep(PUBLISH_ACK_MS * 1.5);
      process.kill(nats.pid, 'SIGCONT');
      await puts;
    } finally {
      process.kill(nats.pid, 'SIGCONT');
    }
    expect((await sent()) - before).to.equal(bodies.length);
  });

  it('tells a missing blob by type', async () => {
    const error = await blobs.get({ sha256: 'f'.repeat(64), sizeBytes: 3n }).catch((reason) => reason);
    expect(error.reason).to.equal('BLOB_MISSING');
  });

  it('gives several blobs at once, each in its place, and the others where some are gone or damaged', async () => {
    const sizes = [BLOB_CHUNK_BYTES * 9 + 1, 0, 3, BLOB_CHUNK_BYTES, 70_000];
    const stored = sizes.map((size) => randomBytes(size));
    const refs = await Promise.all(stored.map((one) => blobs.put(one)));
    await bus.js.publish(subjects.blobChunk(refs[2]?.sha256 ?? '', 0), bytes('odd'));
    const gone = { sha256: 'e'.repeat(64), sizeBytes: BigInt(BLOB_CHUNK_BYTES + 1) };
    // As references were before they had a checksum.
    const older = refs.map(({ sha256, sizeBytes }) => ({ sha256, sizeBytes }));
    const slow: Bus = { ...bus, reads: { usable: false } as Bus['reads'] };
    for (const store of [blobs, createBlobStore(slow)]) {
      const { blobs: found, memory } = await store.getAll([gone, ...refs, ...older]);
      for (const [i, one] of [...stored, ...stored].entries()) {
        const got = found[i + 1];
        if (i % stored.length === 2) expect(got).to.include({ reason: 'BLOB_MISSING' });
        else expect(Buffer.from(got as Uint8Array).equals(one), `${i}`).to.equal(true);
      }
      expect((found[0] as PolarError).message).to.include('chunk 0 is not there');
      expect(memory.byteLength).to.equal(memory.buffer.byteLength);
    }
  });

  it('keeps what was published through a kill of the server in the middle', async () => {
    const subject = subjects.completion('killed', 1);
    let published = 0;
    const writing = (async () => {
      for (let i = 0; i < 200; i++) {
        await publish(bus, blobs, subject, bytes(`record ${i}`), { msgId: `killed:1:${i}` });
        published++;
      }
    })();
    await eventually('some are published', () => published > 10);
    await nats.kill();
    await sleep(200);
    await nats.start();
    await writing;
    const info = await bus.jsm.streams.info(STREAMS.completions.name, { subjects_filter: subject });
    expect(published).to.equal(200);
    expect(info.state.subjects?.[subject]).to.equal(200);
  });

  it('retries retryable work, bounds handlers, and dead-letters at the limit', async () => {
    const stop = new AbortController();
    let running = 0;
    let peak = 0;
    const done: string[] = [];
    const dead: Delivery[] = [];
    const consuming = consume({
      bus,
      blobs,
      log,
      stream: STREAMS.work.name,
      consumer: CONSUMERS.work('run', 'n1', 2),
      concurrency: 2,
      signal: stop.signal,
      deliveriesMax: 2,
      handle: async (delivery) => {
        peak = Math.max(peak, ++running);
        await sleep(10);
        running--;
        const text = new TextDecoder().decode(delivery.bytes);
        if (text === 'flaky' && delivery.deliveryCount === 1)
          throw new PolarError('ENGINE_UNAVAILABLE', 'again');
        if (text === 'broken') throw new PolarError('ENGINE_UNAVAILABLE', 'always');
        done.push(text);
      },
      onDead: async (delivery) => void dead.push(delivery),
    });
    for (const text of ['a', 'b', 'c', 'd', 'flaky', 'broken']) {
      await publish(bus, blobs, subjects.work('run', 'n1'), bytes(text));
    }
    await eventually('all are handled', () => done.length >= 5 && dead.length > 0);
    stop.abort();
    await consuming;
    expect(done.sort()).to.deep.equal(['a', 'b', 'c', 'd', 'flaky']);
    expect(dead.map((delivery) => new TextDecoder().decode(delivery.bytes))).to.deep.equal(['broken']);
    expect(peak).to.equal(2);
    const stored = async (stream: string): Promise<number> =>
      (await bus.jsm.streams.info(stream)).state.messages;
    await eventually('no work is left', async () => (await stored(STREAMS.work.name)) === 0);
    expect(await stored(STREAMS.dead.name)).to.equal(1);
  });

  it('tells that the blob of a message is gone, be it that the message was handled and is not known to be', async () => {
    const stop = new AbortController();
    const handled: number[] = [];
    const dead: string[] = [];
    const send = async (first: string): Promise<string> => {
      const body = Buffer.alloc(INLINE_BYTES_MAX + 1, first);
      await publish(bus, blobs, subjects.work('run', 'n3'), body, { outline: bytes(`whose ${first}`) });
      return sha256(body);
    };
    const purge = (digest: string) => removeBlob(bus, digest);
    const digest = await send('a');
    await purge(await send('b'));
    // What acknowledges is lost on its way.
    const acks = {
      soon: (send: () => void) => bus.acks.soon(send),
      later: () => {},
    } as unknown as Bus['acks'];
    const consuming = consume({
      ...{
        bus: { ...bus, acks },
        blobs,
        log,
        concurrency: 4,
        signal: stop.signal,
        stream: STREAMS.work.name,
      },
      consumer: { ...CONSUMERS.work('run', 'n3', 4), ack_wait: nanos(300) },
      handle: async ({ bytes: [first = 0] }) => {
        handled.push(first);
        await purge(digest);
      },
      onDead: async ({ bytes: outline }, { reason }) =>
        void dead.push(`${new TextDecoder().decode(outline)}: ${reason}`),
    });
    const left = async () => (await bus.jsm.streams.info(STREAMS.work.name)).state.messages;
    await eventually('both are told', async () => dead.length === 2 && (await left()) === 0);
    stop.abort();
    await consuming;
    expect(handled).to.deep.equal(['a'.charCodeAt(0)]);
    expect(dead.sort()).to.deep.equal(['whose a: BLOB_MISSING', 'whose b: BLOB_MISSING']);
  });

  it('is done with work that is dead where no dead letter can be stored', async () => {
    await using other = await startNats();
    const full = await openBus({ url: other.url, name: 'test' });
    await full.jsm.streams.update(STREAMS.dead.name, { max_bytes: 10 });
    const stop = new AbortController();
    let deaths = 0;
    const consuming = consume({
      ...{ bus: full, blobs: createBlobStore(full), log, concurrency: 1, signal: stop.signal },
      ...{ stream: STREAMS.work.name, consumer: { ...CONSUMERS.work('run', 'n4', 1), ack_wait: nanos(300) } },
      handle: () => Promise.reject(new PolarError('INVALID_REQUEST', 'none')),
      onDead: async () => void deaths++,
    });
    await publish(full, createBlobStore(full), subjects.work('run', 'n4'), bytes('broken'));
    const left = async () => (await full.jsm.streams.info(STREAMS.work.name)).state.messages;
    await eventually('it is gone', async () => (await left()) === 0);
    stop.abort();
    await consuming;
    await full.close();
    expect(deaths).to.equal(1);
  });

  it('goes on with work after a kill of the server, and when the consumer was deleted', async () => {
    const stop = new AbortController();
    // An acknowledgement that a kill or a deletion overtakes is lost, and its message comes again.
    const handled = new Set<number>();
    const consumer = CONSUMERS.work('run', 'n2', 4);
    const consuming = consume({
      ...{ bus, blobs, log, consumer, concurrency: 4, signal: stop.signal, stream: STREAMS.work.name },
      handle: async ({ seq }) => void handled.add(seq),
    });
    const expected: number[] = [];
    const work = async (): Promise<void> => {
      const seq = await publish(bus, blobs, subjects.work('run', 'n2'), bytes('work'));
      expected.push(seq);
      await eventually('it is handled', () => handled.has(seq));
    };
    await work();
    await nats.kill();
    await nats.start();
    await work();
    await bus.jsm.consumers.delete(STREAMS.work.name, String(consumer.durable_name));
    await work();
    stop.abort();
    await consuming;
    expect([...handled].sort((a, b) => a - b)).to.deep.equal(expected);
  });

  it('is asked again about itself and its streams where it does not answer at first', async () => {
    const opened = ['INFO', 'STREAM\\.INFO'].map(async (asked) => {
      const first = new RegExp(`PUB \\$JS\\.API\\.${asked}\\b.*\\r\\n.*\\r\\n`);
      let swallowed = 0;
      const between = createServer((client) => {
        const server = connect(nats.port, '127.0.0.1');
        client.on('data', (chunk) => {
          const text = chunk.toString('latin1');
          const rest = swallowed === 0 ? text.replace(first, '') : text;
          if (rest.length < text.length) swallowed += 1;
          server.write(rest, 'latin1');
        });
        server.pipe(client);
        for (const one of [client, server])
          one.on('error', () => {}).on('close', () => void client.destroy());
        client.on('close', () => server.destroy());
      });
      await once(between.listen(0, '127.0.0.1'), 'listening');
      try {
        const { port } = between.address() as AddressInfo;
        const late = await openBus({ url: `nats://127.0.0.1:${port}`, name: 'late' });
        await late.close();
        expect(swallowed).to.equal(1);
      } finally {
        between.close();
      }
    });
    await Promise.all(opened);
  });
});
