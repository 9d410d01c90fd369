// Commands in a sandbox as their callers see them, over a connection to a real server.
import { once } from 'node:events';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { create, toBinary } from '@bufbuild/protobuf';
import { durationMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { expect } from 'chai';
import {
  ExecResponseSchema,
  RuntimeService,
} from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createPlainClient, createServiceClient } from '../../services/common/client.ts';
import { type ExecClock, execCollected, execStreamed, type Runtimes } from '../../services/common/exec.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';

/** Streams that Node's HTTP/2 server lets a client reset one after another, before it cuts the connection. */
const RESETS_MAX = 1_000;

describe('exec', () => {
  let server: RunningServer;
  let runtimes: Runtimes;
  const left = Promise.withResolvers<void>();
  /** What limitExec is answered, one after the other. */
  const answers: (boolean | Error)[] = [];
  /** Told by limitExec. */
  const told: number[] = [];
  const heard = Promise.withResolvers<void>();
  /** Of the commands. */
  const limits: number[] = [];
  before(async () => {
    server = await startServer({
      host: '127.0.0.1',
      port: 0,
      services: [RuntimeService.typeName],
      routes: (router) =>
        router.service(RuntimeService, {
          async *exec({ argv, timeout }, { signal }) {
            if (timeout !== undefined) limits.push(durationMs(timeout));
            yield { event: { case: 'stdout', value: Buffer.from(argv.join(' ')) } };
            if (argv[0] === 'lost') return;
            if (argv[0] === 'refused') throw new ConnectError('not this', Code.InvalidArgument);
            if (argv[0] === 'wait') await new Promise((resolve) => signal.addEventListener('abort', resolve));
            if (argv[1] === 'sink') left.resolve();
            if (argv[0] === 'limited') await heard.promise;
            yield { event: { case: 'result', value: { exitCode: 3 } } };
          },
          limitExec({ timeout }) {
            if (timeout !== undefined) told.push(durationMs(timeout));
            const answer = answers.shift() ?? true;
            if (answer instanceof Error) throw answer;
            if (answer) heard.resolve();
            return { running: answer };
          },
          renewLease() {
            throw new ConnectError('not this', Code.InvalidArgument);
          },
        }),
    });
    runtimes = createServiceClient(RuntimeService, `http://127.0.0.1:${server.port}`);
  });
  after(() => server.close());

  const run = (argv: string[], signal = new AbortController().signal) =>
    execCollected(runtimes, { runtimeId: 'rt', argv, timeoutMs: 60_000 }, signal);

  it('is as good on one connection after thousands of commands', async () => {
    for (let i = 0; i < RESETS_MAX + 200; i++) {
      const { stdout, result } = await run(['echo', `${i}`]);
      expect([Buffer.from(stdout).toString(), result.exitCode]).to.deep.equal([`echo ${i}`, 3]);
    }
  }).timeout(30_000);

  it('begins with what its clock tells: until it is there no other limit reaches it', async () => {
    const clock: ExecClock = {
      follow(renew) {
        renew(90_000);
        return { [Symbol.dispose]: () => {} };
      },
    };
    const command = { runtimeId: 'rt', argv: ['echo'], timeoutMs: 60_000, clock };
    await execCollected(runtimes, command, new AbortController().signal);
    expect(limits.at(-1)).to.equal(90_000);
  });

  it('hears of another limit at last where it could not at once, and then no more', async () => {
    answers.push(new ConnectError('not now', Code.Unavailable), false);
    const clock: ExecClock = {
      follow(renew) {
        setImmediate(() => renew(80_000));
        return { [Symbol.dispose]: () => {} };
      },
    };
    const command = { runtimeId: 'rt', argv: ['limited'], timeoutMs: 60_000, clock };
    const { result } = await execCollected(runtimes, command, AbortSignal.timeout(10_000));
    expect(result.exitCode).to.equal(3);
    expect(told).to.have.length(3);
    expect(told.at(-1), 'what is left by then').to.be.within(70_000, 79_999);
  });

  it('tells a stream without a result as a lost sandbox, and ends with its caller', async () => {
    const lost = await run(['lost']).catch((error) => error);
    expect(lost).to.include({ reason: 'RUNTIME_LOST' });
    const leaving = new AbortController();
    const left = run(['wait'], leaving.signal).catch((error) => error);
    setTimeout(() => leaving.abort(new Error('the caller left')), 50);
    expect(await left).to.include({ message: 'the caller left' });
  });

  it('tells a stream that breaks off as a lost sandbox, after a message or in its middle', async () => {
    const message = toBinary(
      ExecResponseSchema,
      create(ExecResponseSchema, { event: { case: 'stdout', value: Buffer.from('half') } }),
    );
    const enveloped = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
    for (const sent of [enveloped, enveloped.subarray(0, -1), Buffer.alloc(0)]) {
      await using broken = await answering(sent);
      const input = { runtimeId: 'rt', argv: ['x'], timeoutMs: 60_000 };
      const lost = await execCollected(broken.runtimes, input, new AbortController().signal).catch(
        (error) => error,
      );
      expect(lost, `${sent.length} bytes`).to.include({ reason: 'RUNTIME_LOST' });
    }
  });

  it('tells what the server refuses without a reason of the catalogue as refused', async () => {
    const plain = createPlainClient(RuntimeService, `http://127.0.0.1:${server.port}`);
    const calls = [run(['refused']), runtimes.renewLease({}), plain.renewLease({})];
    const refused = await Promise.all(calls.map((call) => call.catch((error) => error.reason)));
    expect(refused).to.deep.equal(Array(3).fill('INVALID_REQUEST'));
  });

  it('is left where what takes its output throws', async () => {
    const full = (): never => {
      throw new Error('no room');
    };
    const input = { runtimeId: 'rt', argv: ['wait', 'sink'], timeoutMs: 60_000 };
    const sinks = { stdout: full, stderr: full };
    const thrown = await execStreamed(runtimes, input, sinks, new AbortController().signal).catch(
      (error) => error,
    );
    expect((thrown as Error).message).to.contain('no room');
    await left.promise;
  });
});

/** A server that ends each stream after these bytes. */
async function answering(bytes: Uint8Array): Promise<{ runtimes: Runtimes } & AsyncDisposable> {
  const sessions: ServerHttp2Session[] = [];
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/connect+proto' }).end(bytes);
  }).on('session', (session) => sessions.push(session));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    runtimes: createServiceClient(RuntimeService, `http://127.0.0.1:${port}`),
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const session of sessions) session.destroy();
      await closed;
    },
  };
}
