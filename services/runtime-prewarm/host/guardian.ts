// The guardian: a detached process that ends whatever sandboxes a killed manager leaves behind.
import type { ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { withTimeout } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { GUARDIAN_END_MS, GUARDIAN_LOCK_MS } from '../../common/limits.ts';
import { spawnChild } from '../../common/spawn-child.ts';
import { SYSTEM_PATH } from './tools.ts';

const SCRIPT = join(import.meta.dirname, 'guardian.sh');
const REAPER = join(import.meta.dirname, 'reap_containers.py');
const EXIT_LOCKED = 75;

export interface GuardianOptions {
  /** Lock file of the data. */
  readonly lock: string;
  /** Folder of all boxes: emptied at the start and removed at the end. */
  readonly boxes: string;
  /** Where launchers see the folders; undefined: mounts cannot be made here. */
  readonly stage: string | undefined;
  /** Name on the stage to host path. */
  readonly shown: ReadonlyMap<string, string>;
  /** Folders of control groups whose processes belong to this manager. */
  readonly groupBases: readonly string[];
  readonly python: string;
  /** Of container engines. */
  readonly sockets: readonly string[];
  /** Label of its containers. */
  readonly instance: string;
}

export interface Guardian {
  /** Its mount namespace has the stage. */
  readonly pid: number;
  /** Rejects when it ends before `close`; never resolves. */
  readonly failed: Promise<never>;
  /** Let it clear up, and wait for its end. */
  close(): Promise<void>;
}

/** Resolves when earlier leftovers are gone. Throws INVALID_CONFIG while another manager uses the same data. */
export async function startGuardian(options: GuardianOptions): Promise<Guardian> {
  const script = ['sh', SCRIPT, options.lock, String(GUARDIAN_LOCK_MS / 1000), options.boxes];
  const shown = [...options.shown].map(([name, source]) => `${name}=${source}`);
  const { python, sockets, instance } = options;
  const containers = [python, REAPER, JSON.stringify(sockets), instance];
  const argv = [...script, options.stage ?? '', options.groupBases.join(' '), ...containers, ...shown];
  // `slave`: mounts that the host makes later are seen; the stage is seen by nobody else.
  const own = options.stage === undefined ? [] : ['unshare', '--mount', '--propagation', 'slave'];
  const [command = '', ...args] = [...own, ...argv];
  const child = spawnChild(command, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    env: { PATH: SYSTEM_PATH },
    cwd: '/',
  });
  const exited = once(child, 'exit');
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => {});
  let closing = false;
  exited.then(
    () => closing || reject(new PolarError('SANDBOX_FAILED', 'the guardian of the sandboxes ended')),
    reject,
  );
  await ready(child, options);
  return {
    pid: child.pid ?? 0,
    failed,
    async close() {
      closing = true;
      child.stdin.end();
      const limit = withTimeout(GUARDIAN_END_MS);
      await Promise.race([exited, once(limit, 'abort')]);
    },
  };
}

async function ready(
  child: ChildProcessByStdio<Writable, Readable, Readable>,
  { lock }: GuardianOptions,
): Promise<void> {
  child.stdin.on('error', () => {});
  const complaint = text(child.stderr).catch(() => '');
  const said = await Promise.race([
    once(child.stdout, 'data').then(() => true),
    once(child, 'close').then(() => false),
  ]);
  if (said) return;
  if (child.exitCode === EXIT_LOCKED) {
    throw new PolarError(
      'INVALID_CONFIG',
      `another runtime-prewarm holds ${lock}: stop it, or set another gateway.nodes[].id or data_dir`,
    );
  }
  throw new PolarError('SANDBOX_FAILED', `the guardian cannot start: ${(await complaint).trim()}`);
}
