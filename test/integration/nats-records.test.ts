// Reading the records of an attempt from a server that is slow to answer, or away in between.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { PUBLISH_ACK_MS, RECORDS_FETCH_MAX } from '../../services/common/limits.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { createRecords } from '../../services/common/nats/records.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { RecordLog } from '../../services/llm-proxy/attempts/record-log.ts';
import { startNats } from '../support/nats.ts';

const stream = STREAMS.completions.name;

/** In front of the server: what it does with what a client sends, and with what the server sends, is the test's. */
async function openBetween(
  serverPort: number,
  pass: {
    ask?: (bytes: string | Buffer, send: () => void) => void;
    answer?: (bytes: string | Buffer) => boolean;
  },
) {
  const proxy = createServer((client) => {
    const server = connect(serverPort, '127.0.0.1');
    client.on('error', () => {}).on('close', () => server.destroy());
    server.on('error', () => {}).on('close', () => client.destroy());
    client.on('data', (bytes) => {
      const send = (): unknown => server.write(bytes);
      if (pass.ask === undefined) send();
      else pass.ask(bytes, send);
    });
    server.on('data', (bytes) => {
      if (pass.answer?.(bytes) === false) server.destroy();
      else client.write(bytes);
    });
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const url = `nats://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return { url, [Symbol.dispose]: () => void proxy.close() };
}

const { signal } = new AbortController();

/** Stores so many records of an attempt; the ids of their calls. */
async function store(bus: Bus, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => `call-${i}`);
  for (const [index, callId] of ids.entries()) {
    const record = create(CompletionSchema, { callId, index, baseIndex: -1 });
    await bus.acks.store(subjects.completion('s', 1), toBinary(CompletionSchema, record), {});
  }
  return ids;
}

/** The same, and reads them all. */
async function readBack(bus: Bus, count: number): Promise<void> {
  const ids = await store(bus, count);
  const found = await createRecords(bus, createBlobStore(bus)).all('s', 1, signal);
  expect(found.map(({ callId }) => callId)).to.deep.equal(ids);
}

describe('records of an attempt', () => {
  it('are read where NATS answers late', async () => {
    await using nats = await startNats();
    let questions = 0;
    const ask = (bytes: string | Buffer, send: () => void): void => {
      const isHeld = bytes.includes('$JS.API.CONSUMER.INFO') && questions++ === 0;
      setTimeout(send, isHeld ? PUBLISH_ACK_MS * 2 : 0);
    };
    using between = await openBetween(nats.port, { ask });
    const bus = await openBus({ url: between.url, name: 'test' });
    await readBack(bus, 1).finally(() => bus.close());
    expect(questions).to.be.greaterThan(0);
  });

  it('are read on where the connection breaks while they come', async () => {
    await using nats = await startNats();
    let cuts = 0;
    const answer = (bytes: string | Buffer): boolean => !bytes.includes(`$JS.ACK.${stream}`) || cuts++ > 0;
    using between = await openBetween(nats.port, { answer });
    const bus = await openBus({ url: between.url, name: 'test' });
    await readBack(bus, RECORDS_FETCH_MAX + 8).finally(() => bus.close());
    expect(cuts).to.be.greaterThan(1);
  });

  it('become a token tree where the connection breaks while they come', async () => {
    await using nats = await startNats();
    let cuts = 0;
    const answer = (bytes: string | Buffer): boolean => !bytes.includes(`$JS.ACK.${stream}`) || cuts++ > 0;
    using between = await openBetween(nats.port, { answer });
    const bus = await openBus({ url: between.url, name: 'test' });
    await store(bus, RECORDS_FETCH_MAX + 8);
    const log = new RecordLog(bus, createBlobStore(bus), signal);
    const tree = await log.load({ sessionId: 's', attempt: 1 }).finally(() => bus.close());
    expect(tree.calls).to.equal(RECORDS_FETCH_MAX + 8);
    expect(cuts).to.be.greaterThan(1);
  });

  it('are read on where NATS begins anew, and has forgotten who reads', async () => {
    await using nats = await startNats();
    const bus = await openBus({ url: nats.url, name: 'test' });
    const { consumers } = bus.js;
    let restarts = 0;
    const get: typeof consumers.get = async (...args) => {
      const consumer = await consumers.get(...args);
      if (restarts++ === 0) await nats.kill().then(() => nats.start());
      return consumer;
    };
    const js = Object.assign(Object.create(bus.js), { consumers: { get } });
    await readBack({ ...bus, js }, 3).finally(() => bus.close());
    expect(restarts).to.be.greaterThan(1);
  });
});
