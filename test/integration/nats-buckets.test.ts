// Buckets that several services open at once.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect } from 'chai';
import { openBus } from '../../services/common/nats/bus.ts';
import { startNats } from '../support/nats.ts';

describe('buckets', () => {
  it('are opened by a service that saw none, and asks for it when another has made and changed it', async () => {
    await using nats = await startNats();
    const { hostname, port } = new URL(nats.url);
    const [seen, made] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // What the server says passes later from where it says that there is none.
    const relay = createServer((near) => {
      const far = connect({ host: hostname, port: Number(port) });
      near.on('error', () => far.destroy()).pipe(far);
      far.on('error', () => near.destroy());
      far.on('data', (said: Buffer) => {
        if (!said.includes('stream not found')) return near.write(said);
        seen.resolve();
        return made.promise.then(() => near.write(said));
      });
    }).listen(0, '127.0.0.1');
    await once(relay, 'listening');
    const first = await openBus({ url: nats.url, name: 'first' });
    const url = `nats://127.0.0.1:${(relay.address() as AddressInfo).port}`;
    const second = await openBus({ url, name: 'second' });
    try {
      const opening = second.kv('capabilities');
      await seen.promise;
      await first.kv('capabilities');
      made.resolve();
      await (await opening).put('a', 'b');
      expect((await (await first.kv('capabilities')).get('a'))?.string()).to.equal('b');
    } finally {
      await Promise.all([first.close(), second.close()]);
      relay.close();
    }
  });
});
