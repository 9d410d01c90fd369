// Things that a sandbox must not reach, for the probe that tries to.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findTool, SYSTEM_PATH } from '../../services/runtime-prewarm/host/tools.ts';
import { eventually } from './eventually.ts';

const run = promisify(execFile);

export interface Bait extends AsyncDisposable {
  /** A file. */
  readonly file: string;
  /** On the loopback. */
  readonly tcp: string;
  /** Name of an abstract socket. */
  readonly abstract: string;
}

/** Of this host; its command line also has a `sleep 98765`. */
export async function hostBait(folder: string): Promise<Bait> {
  const file = join(folder, 'bait');
  writeFileSync(file, 'bait', { mode: 0o644 });
  const tcp = createServer().listen(0, '127.0.0.1');
  const name = `polar-bait-${process.pid}`;
  const abstract = createServer().listen(`\0${name}`);
  const sleeper: ChildProcess = spawn('sleep', ['98765'], { stdio: 'ignore' });
  const servers: Server[] = [tcp, abstract];
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const { port } = tcp.address() as { port: number };
  return {
    file,
    tcp: `127.0.0.1:${port}`,
    abstract: name,
    async [Symbol.asyncDispose]() {
      sleeper.kill('SIGKILL');
      for (const server of servers) server.close();
    },
  };
}

/** A server on another machine: a network namespace of its own stands for it. The host reaches it. */
export interface Outside extends AsyncDisposable {
  /** host:port of it, and of this host as it sees it. */
  readonly addresses: readonly string[];
}

const PORT = 8_099;
const SERVE = `import http.server
http.server.HTTPServer(("0.0.0.0", ${PORT}), http.server.BaseHTTPRequestHandler).serve_forever()`;

/** Needs iproute2; undefined where it is not. */
export async function outsideServer(): Promise<Outside | undefined> {
  if (findTool('ip', SYSTEM_PATH) === undefined) return undefined;
  const number = process.pid % 250;
  const [here, there] = [`10.231.${number}.1`, `10.231.${number}.2`];
  const link = `polar${process.pid}`.slice(0, 15);
  const server = spawn('unshare', ['--net', 'python3', '-ISc', SERVE], { stdio: 'ignore' });
  const inside = ['nsenter', `--net=/proc/${server.pid}/ns/net`, 'ip'];
  const ip = async (...args: string[]): Promise<unknown> => await run('ip', args);
  const ipInside = async (...args: string[]): Promise<unknown> =>
    await run(inside[0]!, [...inside.slice(1), ...args]);
  const close = async (): Promise<void> => {
    server.kill('SIGKILL');
    await ip('link', 'del', link).catch(() => {});
  };
  const own = createServer().listen(0, '0.0.0.0');
  try {
    await eventually(
      'the namespace is there',
      () => namespaceOf(server.pid ?? 0) !== namespaceOf(process.pid),
    );
    await ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(server.pid));
    await ip('addr', 'add', `${here}/30`, 'dev', link);
    await ip('link', 'set', link, 'up');
    await ipInside('addr', 'add', `${there}/30`, 'dev', 'eth0');
    await ipInside('link', 'set', 'eth0', 'up');
    await eventually('the host reaches it', () => answers(there, PORT));
  } catch (error) {
    own.close();
    await close();
    throw error;
  }
  const { port } = own.address() as { port: number };
  return {
    addresses: [`${there}:${PORT}`, `${here}:${port}`],
    async [Symbol.asyncDispose]() {
      own.close();
      await close();
    },
  };
}

function namespaceOf(pid: number): string {
  return readlinkSync(`/proc/${pid}/ns/net`);
}

async function answers(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port, timeout: 1_000 });
  socket.once('timeout', () => socket.destroy(new Error('late')));
  return await once(socket, 'connect')
    .then(
      () => true,
      () => false,
    )
    .finally(() => socket.destroy());
}
