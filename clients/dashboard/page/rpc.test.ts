import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { sleep } from '../../../services/common/clock.ts';
import { CallError, call, envelopes, stream } from './rpc.js';

/** Far more than a step of this process takes. */
const SILENT_MS = 600;

const envelope = (flags: number, text: string): Uint8Array => {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([head, Buffer.from(text)]);
};

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('dashboard streams', () => {
  const bytes = Buffer.concat([envelope(0, '{"a":"ü"}'), envelope(0, ''), envelope(2, '{}')]);

  for (const size of [1, 4, 7, 1000]) {
    it(`are read in pieces of ${size} bytes`, async () => {
      const found = await Array.fromAsync(envelopes(inPieces(bytes, size)));
      expect(found).to.deep.equal([
        { flags: 0, text: '{"a":"ü"}' },
        { flags: 0, text: '' },
        { flags: 2, text: '{}' },
      ]);
    });
  }

  it('are given up where a message is too large', async () => {
    const head = Buffer.from([0, 0xff, 0, 0, 0]);
    const error = await Array.fromAsync(envelopes(inPieces(head, 5))).catch((thrown) => thrown);
    expect(error).to.be.instanceOf(CallError).and.to.have.property('code', 'resource_exhausted');
  });
});

describe('dashboard calls', () => {
  it('end where nothing comes any more, as from a machine that is gone', async () => {
    const silent = createServer((request, response) => {
      // A watch that has begun.
      if (request.url === '/watch') response.write(envelope(0, '{}'));
    }).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const asked = { base: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`, silentMs: 50 };
    for (const asking of [call('read', {}, asked), Array.fromAsync(stream('watch', {}, asked))]) {
      const error = await asking.catch((thrown) => thrown);
      expect(error).to.be.instanceOf(CallError).and.to.have.property('code', 'deadline_exceeded');
    }
    silent.closeAllConnections();
    silent.close();
  });

  it('go on for as long as anything of a large answer comes', async () => {
    const whole = { '/read': Buffer.from('{"a":"üüüü"}'), '/export': envelope(0, '{"a":"üüüü"}') };
    const slow = createServer(async (request, response) => {
      const bytes = whole[request.url as keyof typeof whole];
      for await (const piece of inPieces(bytes, 2)) {
        response.write(piece);
        await sleep(SILENT_MS / 5);
      }
      response.end(request.url === '/export' ? envelope(2, '{}') : '');
    }).listen(0, '127.0.0.1');
    await once(slow, 'listening');
    const asked = { base: `http://127.0.0.1:${(slow.address() as AddressInfo).port}`, silentMs: SILENT_MS };
    const asking = Promise.all([call('read', {}, asked), Array.fromAsync(stream('export', {}, asked))]);
    const found = await asking.finally(() => {
      slow.closeAllConnections();
      slow.close();
    });
    expect(found).to.deep.equal([{ a: 'üüüü' }, [{ a: 'üüüü' }]]);
  });
});
