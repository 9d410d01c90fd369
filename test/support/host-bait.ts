// Things that a sandbox must not reach, for the probe that tries to.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import type { RuntimeSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { inheritedDescriptors } from '../../services/runtime-prewarm/host/descriptors.ts';
import { findTool, SYSTEM_PATH } from '../../services/runtime-prewarm/host/tools.ts';
import { eventually } from './eventually.ts';
import { isHostRoot, type TestNode } from './runtime-prewarm.ts';
import { sleepMark } from './sleep-mark.ts';

const run = promisify(execFile);
/** Program of the probe. */
export const PROBE = readFileSync(join(import.meta.dirname, 'sandbox_probe.py'));
const WORKSPACE = '/polar/session/workspace';
const SECRET = 'POLAR_TEST_BAIT';

export interface Bait extends AsyncDisposable {
  /** What test/support/sandbox_probe.py is told of it. */
  readonly env: Readonly<Record<string, string>>;
  /** host:port of other machines; none where there is no iproute2, or who tests is not root. */
  readonly outside: readonly string[];
}

/** Of this host, its processes and another machine; a file of it is in `folder`. */
export async function hostBait(folder: string): Promise<Bait> {
  await using opened = new AsyncDisposableStack();
  const file = join(folder, 'bait');
  writeFileSync(file, 'bait', { mode: 0o644 });
  const [name, secret, nap] = [`polar-bait-${process.pid}`, `bait-env-${process.pid}`, sleepMark()];
  // In the environment of a process that is there, and of those that a manager in this process starts.
  process.env[SECRET] = secret;
  opened.defer(() => {
    delete process.env[SECRET];
  });
  const sleeper = spawn('sh', ['-c', `exec ${nap}`], { stdio: 'ignore' });
  opened.defer(() => {
    sleeper.kill('SIGKILL');
  });
  const [tcp, abstract] = [createServer(), createServer()];
  opened.defer(() => {
    for (const server of [tcp, abstract]) server.close();
  });
  await once(tcp.listen(0, '127.0.0.1'), 'listening');
  await once(abstract.listen(`\0${name}`), 'listening');
  const { addresses: outside } = opened.use(await outsideServer()) ?? { addresses: [] };
  const closing = opened.move();
  return {
    env: {
      PROBE_HOST_FILE: file,
      PROBE_TCP: `127.0.0.1:${(tcp.address() as AddressInfo).port}`,
      PROBE_OUTSIDE: outside.join(' '),
      PROBE_ABSTRACT: name,
      PROBE_HOST_ENV: secret,
      PROBE_HOST_PROC: nap,
      PROBE_FDS: inheritedDescriptors().join(' '),
      PROBE_PROXY: '127.0.0.1:4141',
    },
    outside,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** Tries from a sandbox to reach what it must not. `rootOf`: where the files of another sandbox lie on this host. */
export async function letsNothingThrough(
  node: TestNode,
  spec: MessageInitShape<typeof RuntimeSpecSchema>,
  rootOf: (runtimeId: string) => string | Promise<string>,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  await using bait = await hostBait(node.folder);
  const other = await node.acquire({ spec, session: 'other' });
  await node.sh(other, 'echo mine > secret');
  const id = await node.acquire({ spec, session: 'probe' });
  await node.runtimes.putFiles({
    runtimeId: id,
    files: [{ target: `${WORKSPACE}/probe.py`, content: PROBE }],
  });
  const { out, err, exitCode } = await node.sh(id, '', {
    argv: ['python3', '-ISu', `${WORKSPACE}/probe.py`],
    proxyAccess: true,
    env: { ...bait.env, PROBE_OTHER_FILE: join(await rootOf(other), WORKSPACE, 'secret'), ...env },
  });
  const lines = out.trim().split('\n');
  const leaks = lines.filter((line) => !line.startsWith('ok '));
  expect(leaks, err).to.eql([]);
  expect(lines.length).to.be.greaterThan(40);
  expect(exitCode, err).to.equal(0);
}

/** A server on another machine: a network namespace of its own stands for it. The host reaches it. */
export interface Outside extends AsyncDisposable {
  /** host:port of it, and of this host as it sees it. */
  readonly addresses: readonly string[];
}

const PORT = 8_099;
const SERVE = `import http.server
http.server.HTTPServer(("0.0.0.0", ${PORT}), http.server.BaseHTTPRequestHandler).serve_forever()`;

/** Needs iproute2 and root; undefined where one of them is not. */
export async function outsideServer(): Promise<Outside | undefined> {
  if (findTool('ip', SYSTEM_PATH) === undefined || !isHostRoot) return undefined;
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
  const { port } = own.address() as AddressInfo;
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
