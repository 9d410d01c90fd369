// Reading the records of an attempt through a server that is slow to answer.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { PUBLISH_ACK_MS } from '../../services/common/limits.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { openBus } from '../../services/common/nats/bus.ts';
import { createRecords } from '../../services/common/nats/records.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { startNats } from '../support/nats.ts';

/** In front of the server: holds the first question about a consumer for longer than an acknowledgement may take. */
async function openHolder(serverPort: number) {
  const held = { questions: 0 };
  const proxy = createServer((client) => {
    const server = connect(serverPort, '127.0.0.1');
    client.on('error', () => {}).on('close', () => server.destroy());
    server.on('error', () => {}).on('close', () => client.destroy());
    server.pipe(client);
    client.on('data', (bytes) => {
      if (!bytes.includes('$JS.API.CONSUMER.INFO') || held.questions++ > 0) return server.write(bytes);
      return setTimeout(() => server.write(bytes), PUBLISH_ACK_MS * 2);
    });
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const url = `nats://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return Object.assign(held, { url, [Symbol.dispose]: () => void proxy.close() });
}

describe('records of an attempt', () => {
  it('are read where NATS answers late', async () => {
    await using nats = await startNats();
    using holder = await openHolder(nats.port);
    const bus = await openBus({ url: holder.url, name: 'test' });
    const record = toBinary(CompletionSchema, create(CompletionSchema, { callId: 'one' }));
    await bus.acks.store(subjects.completion('s', 1), record, {});
    const { signal } = new AbortController();
    const found = await createRecords(bus, createBlobStore(bus))
      .all('s', 1, signal)
      .finally(() => bus.close());
    expect(found.map(({ callId }) => callId)).to.deep.equal(['one']);
    expect(holder.questions).to.be.greaterThan(0);
  });
});
