// TLS on the one port: who is let in, by every protocol, and what the others are told. Certificates are the test's own.
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, request as httpsRequest } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { createClient, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { expect } from 'chai';
import { answersOk } from '../../clients/cli/mesh/ready.ts';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createPlainClient, createServiceClient } from '../../services/common/client.ts';
import type { CertificateFiles } from '../../services/common/config/certificates.ts';
import { fromConnectError, PolarError } from '../../services/common/errors.ts';
import { type RunningServer, type ServerOptions, startServer } from '../../services/common/server.ts';
import { CertificateStore } from '../../services/common/tls/certificates.ts';
import { tlsClientOptions } from '../../services/common/tls/client-options.ts';
import { Authority, type KeyPair, WEAK_KEY } from '../support/certificates.ts';
import { freePort } from '../support/nats.ts';

const DAY_MS = 86_400_000;

const store = (files: CertificateFiles): CertificateStore =>
  new CertificateStore(files, (key) => `tls.${key}`);

describe('a port with TLS', function () {
  this.timeout(30_000);
  let folder: string;
  let ours: Authority;
  let others: Authority;
  let server: KeyPair;
  let trainer: KeyPair;
  let stranger: KeyPair;
  const running: RunningServer[] = [];

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-tls-'));
    ours = new Authority(folder, 'ours');
    others = new Authority(folder, 'others');
    server = ours.sign('server', ['DNS:mesh.example', 'IP:127.0.0.1']);
    trainer = ours.sign('trainer', ['DNS:trainer']);
    stranger = others.sign('stranger', ['DNS:stranger']);
  });
  after(() => rmSync(folder, { recursive: true }));
  afterEach(async () => {
    await Promise.all(running.splice(0).map((one) => one.close()));
  });

  const files = (pair: KeyPair): CertificateFiles => ({ cert_file: pair.cert, key_file: pair.key });
  const start = async (
    tls: CertificateStore | undefined,
    more: Partial<ServerOptions> = {},
  ): Promise<number> => {
    const one = await startServer({
      ...{ host: '127.0.0.1', port: 0, tls, services: [TrajectoryService.typeName] },
      routes: (router) =>
        router.service(TrajectoryService, {
          listConsumers: () => ({ consumers: [{ name: 'trainer' }] }),
          async *streamTrajectories() {
            yield { batch: { batchId: 7n } };
          },
        }),
      ...more,
    });
    running.push(one);
    one.readiness.set(true);
    return one.port;
  };
  const mutual = (): CertificateStore => store({ ...files(server), client_ca_file: ours.file });

  /** Every way of calling it. */
  const ways = (baseUrl: string, tls: CertificateStore): Record<string, Transport> => {
    const nodeOptions = baseUrl.startsWith('https') ? tlsClientOptions(tls, ['127.0.0.1']) : {};
    const h1 = { baseUrl, httpVersion: '1.1' as const, nodeOptions };
    const h2 = { baseUrl, httpVersion: '2' as const, nodeOptions };
    return {
      gRPC: createGrpcTransport({ baseUrl, nodeOptions }),
      'gRPC-Web over HTTP/1.1': createGrpcWebTransport(h1),
      'gRPC-Web over HTTP/2': createGrpcWebTransport(h2),
      'Connect over HTTP/1.1': createConnectTransport(h1),
      'Connect over HTTP/2': createConnectTransport(h2),
    };
  };

  const called = async (transport: Transport): Promise<string> => {
    const client = createClient(TrajectoryService, transport);
    try {
      const { consumers } = await client.listConsumers({});
      for await (const { batch } of client.streamTrajectories({ consumer: 'trainer' })) {
        return `${consumers[0]?.name} ${batch?.batchId}`;
      }
      return 'nothing';
    } catch (error) {
      const { reason, message } = fromConnectError(error);
      return `${reason}: ${message}`;
    }
  };

  const by = async (url: string, tls: CertificateStore): Promise<Record<string, string>> => {
    const entries = Object.entries(ways(url, tls)).map(async ([way, transport]) => [
      way,
      await called(transport),
    ]);
    return Object.fromEntries(await Promise.all(entries));
  };

  it('serves gRPC, gRPC-Web and Connect over both versions of HTTP to who has a certificate', async () => {
    const port = await start(mutual());
    const answers = await by(`https://127.0.0.1:${port}`, store({ ...files(trainer), ca_file: ours.file }));
    for (const [way, said] of Object.entries(answers)) expect(said, way).to.equal('trainer 7');
  });

  it('tells who has none, or one of another authority, so in every protocol', async () => {
    const port = await start(mutual());
    const without = await by(`https://127.0.0.1:${port}`, store({ ca_file: ours.file }));
    for (const [way, said] of Object.entries(without)) {
      expect(said, way).to.match(/^TLS_FAILED: .*asks for a client certificate, and none was given/);
    }
    const unknown = await by(`https://127.0.0.1:${port}`, store({ ...files(stranger), ca_file: ours.file }));
    for (const [way, said] of Object.entries(unknown)) {
      expect(said, way).to.match(/^TLS_FAILED: the client certificate is not accepted here/);
    }
  });

  /** By TLS without a certificate. */
  const unnamed = (port: number, more: ConnectionOptions = {}): TLSSocket =>
    tlsConnect({ host: '127.0.0.1', port, ca: readFileSync(ours.file), ...more });

  it('asks for a certificate as well where an earlier connection without one is resumed', async () => {
    const port = await start(mutual());
    const first = unnamed(port, { minVersion: 'TLSv1.3' });
    const ticket = once(first, 'session');
    expect(await post(first, 'Host: 127.0.0.1\r\n')).to.contain('none was given');
    const [session] = await ticket;
    const second = unnamed(port, { minVersion: 'TLSv1.3', session });
    const resumed = once(second, 'secureConnect').then(() => second.isSessionReused());
    expect(await post(second, 'Host: 127.0.0.1\r\n')).to.contain('none was given');
    expect(await resumed).to.equal(true);
  });

  it('refuses whatever name a caller has for it', async () => {
    const port = await start(mutual());
    for (const host of ['Host: ::1:9581\r\n', 'Host: a b\r\n', 'Host: [\r\n', 'Host:\r\n']) {
      expect(await post(connect(port, '127.0.0.1'), host)).to.contain('takes TLS alone');
      expect(await post(unnamed(port), host)).to.contain('none was given');
    }
  });

  it('tells who comes without TLS so in every protocol, and by plain HTTP', async () => {
    const port = await start(store(files(server)));
    const answers = await by(`http://127.0.0.1:${port}`, store({}));
    for (const [way, said] of Object.entries(answers)) {
      expect(said, way).to.match(/^TLS_FAILED: this port takes TLS alone/);
    }
    const plain = await fetch(`http://127.0.0.1:${port}/readyz`);
    expect([plain.status, await plain.text()]).to.deep.equal([
      400,
      'this port takes TLS alone: call it at https://\n',
    ]);
  });

  it('is not called where its authority is unknown, its name is another, or it has no TLS', async () => {
    const failed = async (url: string, tls: CertificateStore): Promise<string> => {
      const calls = [createPlainClient, createServiceClient].map((made) =>
        made(TrajectoryService, url, { tls })
          .listConsumers({})
          .then(
            () => 'answered',
            (error: PolarError) => `${error.reason} ${error.retryable}: ${error.message}`,
          ),
      );
      const [plain, service] = await Promise.all(calls);
      expect(service).to.equal(plain);
      return String(plain);
    };
    const port = await start(store(files(server)));
    const url = `https://127.0.0.1:${port}`;
    expect(await failed(url, store({ ca_file: ours.file }))).to.equal('answered');
    expect(await failed(url, store({ ca_file: others.file }))).to.match(
      /^TLS_FAILED false: .* of no authority that is trusted here/,
    );
    const named = `https://localhost:${port}`;
    expect(await failed(named, store({ ca_file: ours.file }))).to.match(
      /^TLS_FAILED false: .* for another name: .*mesh\.example/,
    );
    // A service of the same mesh on the same machine has the same certificate.
    expect(await failed(named, store({ ...files(server), ca_file: ours.file }))).to.equal('answered');
    const plain = await start(undefined);
    expect(await failed(`https://127.0.0.1:${plain}`, store({ ca_file: ours.file }))).to.equal(
      'TLS_FAILED false: the port has no TLS: call it at http://',
    );
  });

  it('tells its health to who has no certificate, and nothing else', async () => {
    const port = await start(mutual(), { http: (_, response) => Boolean(response.end('secret')) });
    const status = async (path: string): Promise<[number | undefined, string]> => {
      const { promise, resolve, reject } = Promise.withResolvers<[number | undefined, string]>();
      const options = {
        port,
        path,
        agent: false,
        ...tlsClientOptions(store({ ca_file: ours.file }), ['127.0.0.1']),
      };
      const request = httpsRequest({ host: '127.0.0.1', ...options }, (response) => {
        response.setEncoding('utf8').once('data', (text: string) => resolve([response.statusCode, text]));
      });
      request.once('error', reject).end();
      return await promise;
    };
    expect(await status('/readyz')).to.deep.equal([200, 'ok\n']);
    expect(await status('/readyz?')).to.satisfy(([code]: [number]) => code === 400);
    const [code, text] = await status('/anything');
    expect(code).to.equal(400);
    expect(text).to.contain('client certificate');
  });

  it('is no port that `polar up` goes on waiting for where its certificate is not trusted', async () => {
    const port = await start(store(files(server)));
    const ready = (tls: CertificateFiles, host = '127.0.0.1'): Promise<unknown> =>
      answersOk(`https://${host}:${port}/readyz`, store(tls)).catch(
        (error) => `${error.reason}: ${error.message}`,
      );
    expect(await ready({ ca_file: ours.file })).to.equal(true);
    expect(await ready({})).to.match(/^TLS_FAILED: https:.*: .* of no authority that is trusted here/);
    expect(await ready({ ca_file: ours.file }, 'localhost')).to.match(/^TLS_FAILED: .* for another name/);
    await Promise.all(running.splice(0).map((one) => one.close()));
    expect(await ready({})).to.equal(false);
  });

  it('has a port on loopback where plain HTTP is served, and no RPC', async () => {
    const httpPort = await freePort();
    await start(mutual(), { httpPort, http: (_, response) => Boolean(response.end('to a harness')) });
    const url = `http://127.0.0.1:${httpPort}`;
    expect(await (await fetch(`${url}/v1/chat/completions`)).text()).to.equal('to a harness');
    const said = await by(url, store({}));
    for (const [way, answer] of Object.entries(said)) expect(answer, way).to.match(/^[A-Z_]+: /);
  });

  it('takes up new files without a restart, and keeps the old ones while the new ones are no good', async () => {
    const pair = { cert: join(folder, 'live.pem'), key: join(folder, 'live.key') };
    copyFileSync(server.cert, pair.cert);
    copyFileSync(server.key, pair.key);
    const live = store(files(pair));
    const faults: PolarError[] = [];
    live.onFault((error) => faults.push(error));
    const port = await start(live);
    const names = async (): Promise<string> => {
      const options = { ...tlsClientOptions(store({ ca_file: ours.file }), ['127.0.0.1', 'next.example']) };
      return await new Promise((resolve, reject) => {
        httpsRequest({ host: '127.0.0.1', port, path: '/healthz', agent: false, ...options }, (response) => {
          const { socket } = response;
          resolve(
            String(
              'getPeerCertificate' in socket && (socket as never as Peer).getPeerCertificate().subjectaltname,
            ),
          );
          response.destroy();
        })
          .once('error', reject)
          .end();
      });
    };
    const eventually = async (done: () => Promise<boolean> | boolean): Promise<void> => {
      while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 50));
    };
    expect(await names()).to.contain('mesh.example');
    writeFileSync(pair.cert, 'no certificate');
    await eventually(async () => (await names()) !== '' && faults.length > 0);
    expect(faults[0]?.message).to.contain(`tls.cert_file: ${pair.cert}: holds no certificate`);
    rmSync(pair.cert);
    symlinkSync(pair.cert, pair.cert);
    await eventually(async () => (await names()) !== '' && faults.length > 1);
    expect(faults[1]?.message).to.contain(`tls.cert_file: ${pair.cert}: ELOOP`);
    rmSync(pair.cert);
    const weak = ours.sign('weak', ['DNS:mesh.example'], 2, WEAK_KEY);
    copyFileSync(weak.key, pair.key);
    copyFileSync(weak.cert, pair.cert);
    await eventually(async () => (await names()) !== '' && faults.length > 2);
    expect(faults[2]?.message).to.contain(`tls.cert_file: ${pair.cert}: is not taken: `);
    expect(await names()).to.contain('mesh.example');
    const next = ours.sign('next', ['DNS:next.example']);
    copyFileSync(next.key, pair.key);
    copyFileSync(next.cert, pair.cert);
    await eventually(async () => (await names()).includes('next.example'));
  });

  it('does not start with files that cannot be used, and names each', () => {
    const expired = ours.sign('expired', ['DNS:late'], 0);
    const told = (given: CertificateFiles): string => {
      try {
        store(given);
        return 'taken';
      } catch (error) {
        expect(error).to.be.instanceOf(PolarError);
        return (error as Error).message;
      }
    };
    const text = join(folder, 'text.pem');
    writeFileSync(text, 'hello');
    const all = told({
      cert_file: join(folder, 'gone.pem'),
      key_file: text,
      ca_file: folder,
      client_ca_file: text,
    });
    expect(all).to.match(/tls\.cert_file: .*gone\.pem: ENOENT/);
    expect(all).to.match(/tls\.key_file: .*text\.pem: holds no private key/);
    expect(all).to.match(/tls\.ca_file: .*EISDIR/);
    expect(all).to.match(/tls\.client_ca_file: .*text\.pem: holds no certificate/);
    expect(told({ cert_file: server.cert, key_file: trainer.key })).to.match(
      /tls\.key_file: .*trainer\.key is not the key of the certificate in .*server\.pem/,
    );
    expect(told(files(expired))).to.match(/tls\.cert_file: .*expired\.pem: expired on \d{4}-/);
    const weak = ours.sign('weak', ['DNS:weak'], 2, WEAK_KEY);
    expect(told(files(weak))).to.match(/tls\.cert_file: .*weak\.pem: is not taken: .*key too small/);
    expect(told(files(server))).to.equal('taken');
  });

  it('takes an authority in the place of one that has expired, and a chain with one', async () => {
    const old = others.sign('old-authority', ['DNS:old'], 0);
    const together = (name: string, ...parts: string[]): string => {
      const file = join(folder, name);
      writeFileSync(file, parts.map((part) => readFileSync(part, 'utf8')).join(''));
      return file;
    };
    const authorities = together('authorities.pem', old.cert, ours.file);
    const chain = together('chain.pem', server.cert, old.cert);
    const port = await start(store({ ...files(server), cert_file: chain, client_ca_file: authorities }));
    const caller = store({ ...files(trainer), ca_file: authorities });
    const answers = await by(`https://127.0.0.1:${port}`, caller);
    for (const [way, said] of Object.entries(answers)) expect(said, way).to.equal('trainer 7');
    expect(() => store({ ca_file: old.cert })).to.throw(/tls\.ca_file: .*old-authority\.pem: expired on/);
  });

  it('tells what expires within two weeks, and the first of it', () => {
    const told = (given: CertificateFiles): string[] => {
      const heard: string[] = [];
      const opened = store(given);
      opened.onExpiring(({ file, at }) =>
        heard.push(`${file} ${Math.round((at.getTime() - Date.now()) / DAY_MS)}`),
      );
      for (let i = 0; i < 3; i++) expect(opened.current.cert).to.be.a('string');
      return heard;
    };
    const later = new Authority(folder, 'later', 30);
    const long = files(later.sign('long', ['IP:127.0.0.1'], 20));
    expect(told({ ...long, ca_file: later.file })).to.deep.equal([]);
    expect(told({ ...long, ca_file: ours.file })).to.deep.equal([`${ours.file} 2`]);
    const soon = later.sign('soon', ['IP:127.0.0.1'], 1);
    expect(told({ ...files(soon), ca_file: ours.file })).to.deep.equal([`${soon.cert} 1`]);
    const both = join(folder, 'old-and-new.pem');
    writeFileSync(both, [ours, later].map(({ file }) => readFileSync(file, 'utf8')).join(''));
    expect(told({ ...long, ca_file: both }), 'the old one is followed').to.deep.equal([]);
  });

  it('refuses a peer whose certificate has expired', async () => {
    // Another server than ours: ours would not start with it.
    const { cert, key } = ours.sign('old', ['IP:127.0.0.1'], 0);
    const old = createServer({ cert: readFileSync(cert), key: readFileSync(key) }).listen(0, '127.0.0.1');
    await new Promise((resolve) => old.once('listening', resolve));
    const url = `https://127.0.0.1:${(old.address() as AddressInfo).port}`;
    const error = await createPlainClient(TrajectoryService, url, { tls: store({ ca_file: ours.file }) })
      .listConsumers({})
      .catch((reason: PolarError) => reason);
    old.close();
    expect(error).to.include({ reason: 'TLS_FAILED' });
    expect((error as PolarError).message).to.contain('CERT_HAS_EXPIRED');
  });
});

/** What comes back on a connection for an RPC in JSON. */
async function post(socket: Socket, host: string): Promise<string> {
  const path = `/${TrajectoryService.typeName}/ListConsumers`;
  const head = `POST ${path} HTTP/1.1\r\n${host}content-type: application/json\r\ncontent-length: 2\r\n`;
  socket.end(`${head}connection: close\r\n\r\n{}`);
  return String(Buffer.concat(await socket.toArray()));
}

interface Peer {
  getPeerCertificate(): { readonly subjectaltname: string };
}
