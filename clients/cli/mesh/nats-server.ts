// The nats-server of a local mesh. It ends after the services, whatever becomes of this process.
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { CertificateFiles } from '../../../services/common/config/certificates.ts';
import { PolarError } from '../../../services/common/errors.ts';
import { ensureNatsServer } from '../../../tools/nats-server.mjs';
import { inherited } from '../config.ts';
import { progress } from '../output/say.ts';
import { type Child, startChild } from './child.ts';
import type { LocalTopology } from './topology.ts';

/** Go's memory limit: without it the server keeps what it once read. */
const GOMEMLIMIT = '512MiB';
/** Cores that it works on at once. The others are for services and sandboxes, which it would take turns with. */
const GOMAXPROCS = String(Math.max(1, Math.floor(availableParallelism() / 2)));
/** What the streams may reserve; they declare 22 GiB. */
const FILE_STORE = '64GB';
/** Wait for the server of an earlier mesh to end. */
const LOCK_WAIT_S = 15;

/** A named pipe. Who holds `users` open keeps the server; when the last one has gone, it ends. */
export interface Lifeline extends Disposable {
  readonly users: number;
  readonly server: number;
}

export function createLifeline(dataDir: string): Lifeline {
  const path = join(dataDir, 'run', 'nats-users');
  rmSync(path, { force: true });
  execFileSync('mkfifo', ['-m', '600', path]);
  // Opened for both, so that opening does not wait for the other end.
  const users = openSync(path, 'r+');
  const server = openSync(path, 'r');
  return {
    users,
    server,
    [Symbol.dispose]() {
      closeSync(users);
      closeSync(server);
    },
  };
}

const lockOf = (dataDir: string): string => join(dataDir, 'run', 'nats-lock');

/** Wait, for LOCK_WAIT_S, until what a killed mesh left on the folder has ended. */
export function awaitEarlier(dataDir: string): void {
  if (!existsSync(lockOf(dataDir))) return;
  try {
    execFileSync('flock', ['-w', String(LOCK_WAIT_S), lockOf(dataDir), 'true'], { stdio: 'ignore' });
  } catch {
    // Without flock, or with a server that does not end: starting ours will tell.
  }
}

/** Of a nats-server that shares its machine with a mesh; what the operator's environment says comes first. */
export const natsEnvironment = (): Record<string, string> => ({
  PATH: inherited['PATH'] ?? '',
  GOMEMLIMIT: inherited['GOMEMLIMIT'] || GOMEMLIMIT,
  GOMAXPROCS: inherited['GOMAXPROCS'] || GOMAXPROCS,
});

/** Of its store. */
export const storeOf = (dataDir: string): string => join(dataDir, 'nats');

/** Throws NATS_UNAVAILABLE with the ways to get a server when there is none. */
export function startNatsServer(
  { topology, monitorPort }: LocalTopology,
  lifeline: Lifeline,
  logFile: string,
): Child {
  const { data_dir: dataDir, nats } = topology;
  const folder = storeOf(dataDir);
  mkdirSync(folder, { recursive: true });
  const config = join(dataDir, 'run', 'nats.conf');
  const store = `jetstream { store_dir: ${JSON.stringify(folder)}, max_file_store: ${FILE_STORE} }`;
  const listen = `listen: "127.0.0.1:${nats.port}"\nhttp: "127.0.0.1:${monitorPort}"`;
  writeFileSync(config, `${listen}\n${store}\n${tlsBlock(nats.tls)}`);
  const script = join(import.meta.dirname, 'nats-server.sh');
  return startChild({
    command: '/bin/sh',
    args: [script, lockOf(dataDir), String(LOCK_WAIT_S), natsServer(), '-c', config],
    env: natsEnvironment(),
    output: { file: logFile },
    third: lifeline.server,
  });
}

/** It reads the files when it starts. */
function tlsBlock(tls: CertificateFiles | undefined): string {
  if (tls === undefined) return '';
  const { cert_file: cert, key_file: key, client_ca_file: clients } = tls;
  const callers = clients === undefined ? '' : `, ca_file: ${JSON.stringify(clients)}, verify: true`;
  return `tls { cert_file: ${JSON.stringify(cert)}, key_file: ${JSON.stringify(key)}${callers} }\n`;
}

function natsServer(): string {
  try {
    return ensureNatsServer(progress);
  } catch (error) {
    throw new PolarError('NATS_UNAVAILABLE', (error as Error).message, { cause: error });
  }
}
