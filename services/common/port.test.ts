import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { Authority } from '../../test/support/certificates.ts';
import { createPort, type Handler } from './port.ts';
import { CertificateStore } from './tls/certificates.ts';

/** Above what Node.js lets a connection of HTTP/2 have unsent by itself. */
const LARGE_BYTES = 32 * 1024 * 1024;

describe('a port', () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length;

  it('leaves no timer behind of connections that said nothing', async () => {
    const port = createPort((_, response) => response.end());
    const listening = await port.listen(0);
    const before = timers();
    const silent = [connect(listening, '127.0.0.1'), connect(listening, '127.0.0.1')];
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    // One leaves by itself; of the other the server has heard when it closes.
    silent[0]?.destroy();
    await new Promise((resolve) => setTimeout(resolve, 20));
    await port.close();
    for (const socket of silent) socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(timers()).to.equal(before);
  });

  describe('whose caller does not read a large answer over HTTP/2', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-port-'));
    const answer: Handler = (request, response) => {
      (response as ServerResponse).end(request.url === '/large' ? Buffer.alloc(LARGE_BYTES) : 'small');
    };
    let port: ReturnType<typeof createPort>;
    let session: ClientHttp2Session;
    afterEach(async () => {
      session.destroy();
      await port.close(0);
    });
    after(() => rmSync(folder, { recursive: true }));

    for (const scheme of ['http', 'https']) {
      it(`takes further calls of that connection, by ${scheme}`, async () => {
        const { cert, key } = new Authority(folder, 'ours').sign('port', ['IP:127.0.0.1']);
        const store = new CertificateStore({ cert_file: cert, key_file: key }, String);
        port = createPort(answer, scheme === 'https' ? { tls: { store, plain: answer } } : {});
        const url = `${scheme}://127.0.0.1:${await port.listen(0)}`;
        session = connectHttp2(url, { rejectUnauthorized: false });
        await once(session.request({ ':path': '/large' }), 'response');
        const further = Array.from({ length: 3 }, () => text(session.request({ ':path': '/small' })));
        expect(await Promise.all(further)).to.deep.equal(['small', 'small', 'small']);
      });
    }
  });

  describe('whose callers do not end what they send', () => {
    const requestMs = 100;
    let port: ReturnType<typeof createPort>;
    let listening: number;
    let bodies: Promise<string>[];
    before(async () => {
      bodies = [];
      port = createPort(
        (request, response) => {
          if (request.url === '/unread') {
            // Longer than the limit: of an answer there is none.
            setTimeout(() => response.end('late'), 3 * requestMs);
            return;
          }
          bodies.push(
            text(request).then(
              () => 'whole',
              () => 'cut',
            ),
          );
        },
        { requestMs },
      );
      listening = await port.listen(0);
    });
    after(() => port.close(0));

    it('ends a request of HTTP/1 at its limit', async () => {
      const socket = connect(listening, '127.0.0.1');
      socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n1');
      expect(await text(socket)).to.match(/^HTTP\/1\.1 408 |^$/);
      expect(await bodies.at(-1)).to.equal('cut');
    });

    it('ends one of HTTP/2 at the same limit, and others on its connection go on', async () => {
      const session = connectHttp2(`http://127.0.0.1:${listening}`);
      const endless = session.request({ ':method': 'POST', ':path': '/' });
      endless.on('error', () => {});
      const drip = setInterval(() => endless.write('1'), requestMs / 5);
      const whole = session.request({ ':method': 'POST', ':path': '/unread' });
      whole.end('all of it');
      await once(endless, 'close');
      clearInterval(drip);
      expect(await bodies.at(-1)).to.equal('cut');
      expect(await text(whole)).to.equal('late');
      session.destroy();
    });
  });
});
