// A real nats-server for a test: own port, own store, killed and removed with `await using`.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type NatsError } from 'nats';
import { natsEnvironment } from '../../clients/cli/mesh/nats-server.ts';
import { claimPort } from '../../clients/cli/mesh/ports.ts';
import { ensureNatsServer } from '../../tools/nats-server.mjs';

export interface TestNats extends AsyncDisposable {
  /** Of JetStream's files. */
  readonly store: string;
  readonly url: string;
  readonly port: number;
  /** Of the process; 0: it never ran. */
  readonly pid: number;
  /** SIGKILL, the store stays. */
  kill(): Promise<void>;
  /** Start again on the same port and store. */
  start(): Promise<void>;
}

/** `config`: more lines of its configuration. `storeDir`: for JetStream's files, in place of a folder of its own. */
export async function startNats(config = '', storeDir?: string): Promise<TestNats> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-nats-'));
  const file = join(folder, 'nats.conf');
  const store = storeDir ?? join(folder, 'store');
  writeFileSync(
    file,
    `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${store}", max_file_store: 64GB }\n${config}\n`,
  );
  let child: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  const start = async (): Promise<void> => {
    // It ends with this process, even where that is killed.
    const command = ['--pdeathsig', 'KILL', ensureNatsServer(), '-c', file, '-l', join(folder, 'log')];
    child = spawn('setpriv', command, { stdio: 'ignore', env: natsEnvironment() });
    for (;;) {
      try {
        // Without TLS, also where that is offered: who trusts its certificate is the test's matter.
        const nc = await connect({ port, tls: null, timeout: 1_000, reconnect: false });
        await nc.jetstreamManager({ timeout: 5_000 });
        return await nc.close();
      } catch (error) {
        // One that asks for a login is up when it does.
        if ((error as NatsError).code === 'AUTHORIZATION_VIOLATION') return;
        if (child.exitCode !== null) throw new Error(`nats-server ended with ${child.exitCode}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  };
  await start();
  return {
    store,
    url: `nats://127.0.0.1:${port}`,
    port,
    get pid() {
      return child?.pid ?? 0;
    },
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Below what the kernel gives to connections and to who asks for any port. */
const PORTS = { first: 20_000, count: 10_000 };

/** A port of 127.0.0.1 that is free and that nobody else gets while this process lives. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + randomInt(PORTS.count);
    if (await claimPort(port, '127.0.0.1')) return port;
  }
}

/** Free ports that this process does not claim, as the mesh will; of a range that no other test takes them from. */
export async function unclaimedPorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = 10_000 + randomInt(10_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    server.close();
    if (free) ports.add(port);
  }
  return [...ports];
}
