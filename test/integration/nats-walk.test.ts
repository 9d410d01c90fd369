// A walk through a stream: whoever concludes something from what is not there must have seen all that is.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect } from 'chai';
import { RECORDS_FETCH_MAX } from '../../services/common/limits.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { walk } from '../../services/common/nats/walk.ts';
import { startNats, type TestNats } from '../support/nats.ts';

const stream = STREAMS.archivedTasks.name;
const { signal } = new AbortController();

/** In front of the server: cuts a connection in place of the next messages of a stream that it was to bring. */
async function openCutter(serverPort: number) {
  const armed = { isArmed: false };
  const proxy = createServer((client) => {
    const server = connect(serverPort, '127.0.0.1');
    client.on('error', () => {}).on('close', () => server.destroy());
    server.on('error', () => {}).on('close', () => client.destroy());
    client.pipe(server);
    server.on('data', (bytes) => {
      if (!armed.isArmed || !bytes.includes(`$JS.ACK.${stream}`)) return client.write(bytes);
      armed.isArmed = false;
      return server.destroy();
    });
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const url = `nats://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return Object.assign(armed, { url, [Symbol.dispose]: () => void proxy.close() });
}

describe('a walk', () => {
  let nats: TestNats;
  let bus: Bus;
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
  });
  afterEach(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  const put = async (...tasks: (string | number)[]): Promise<void> => {
    for (const task of tasks) await bus.js.publish(subjects.archivedTask(`t${task}`), Buffer.from(`${task}`));
  };
  const putSome = (): Promise<void> => put(...Array(RECORDS_FETCH_MAX + 8).keys());

  it('fails where its last messages were sent and did not come', async () => {
    await putSome();
    using cutter = await openCutter(nats.port);
    const walker = await openBus({ url: cutter.url, name: 'walker' });
    let seen = 0;
    const walking = async (): Promise<void> => {
      for await (const _ of walk(walker, { stream }, signal)) cutter.isArmed = ++seen === RECORDS_FETCH_MAX;
    };
    const error = await walking().catch((reason) => reason);
    await walker.close();
    expect(seen).to.equal(RECORDS_FETCH_MAX);
    expect(error?.reason).to.equal('NATS_UNAVAILABLE');
  });

  it('ends where its last messages have been removed', async () => {
    await putSome();
    let seen = 0;
    for await (const _ of walk(bus, { stream }, signal)) {
      if (++seen === RECORDS_FETCH_MAX) await bus.jsm.streams.purge(stream);
    }
    expect(seen).to.equal(RECORDS_FETCH_MAX);
  });

  it('sees a message that moves to the end, behind new ones', async () => {
    await putSome();
    const moved = RECORDS_FETCH_MAX + 4;
    const seen = new Set<string>();
    for await (const message of walk(bus, { stream }, signal)) {
      if (seen.size === 0) await put('new', moved);
      seen.add(message.string());
    }
    expect(seen).to.include(`${moved}`);
    expect(seen.size).to.equal(RECORDS_FETCH_MAX + 9);
  });

  it('does not go on for ever in a stream that grows as fast as it is read', async () => {
    await putSome();
    let seen = 0;
    const walking = async (): Promise<void> => {
      for await (const _ of walk(bus, { stream }, signal)) {
        bus.nc.publish(subjects.archivedTask(`more${seen++}`));
        const stored = bus.acks.store(subjects.archivedTask(`more${seen++}`), new Uint8Array(), {});
        // The walk must not come to an end before them.
        if (seen % 16 === 0) await stored;
      }
    };
    const error = await walking().catch((reason) => reason);
    expect(error?.message).to.match(/grows faster than it is read/);
  });
});
