// One launcher process from spawn to proved end: output, limits, kill.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { settledWithin } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { SANDBOX_END_MS } from '../../common/limits.ts';
import { spawnChild } from '../../common/spawn-child.ts';
import type { Cell, CellUsage } from '../containment/containment.ts';
import type { CommandLimit, OutputSink } from '../domain/command.ts';
import { Output } from './output.ts';
import { SYSTEM_PATH } from './tools.ts';
import { Watch } from './watch.ts';

export interface Launch {
  readonly argv: readonly string[];
  /** Folder with the pipes for the output. */
  readonly folder: string;
  readonly stdin: Uint8Array;
  readonly limit: CommandLimit;
  /** Descriptors from 3 on: new pipes, or open ones that are handed over. */
  readonly fds: readonly ('pipe' | number)[];
  /** Says that the command has started; rejects, or resolves false, when the sandbox could not. */
  readonly started: (child: ChildProcess) => Promise<boolean>;
}

export interface Ended {
  /** Of the launcher; 128 + N when signal N ended it. */
  readonly code: number;
  /** The command was about to run, or ran. */
  readonly started: boolean;
  readonly timedOut: boolean;
  readonly empty: boolean;
  readonly usage: CellUsage;
  readonly wallMs: number;
  readonly droppedOutputBytes: number;
  readonly droppedStderrBytes: number;
  /** The first bytes of standard error: what a launcher says that fails. */
  readonly complaint: string;
}

const FIRST_FD = 3;

/** Resolves when nothing of the launch is left. Throws the signal's reason, and what `started` throws. Closes the cell. */
export async function run(cell: Cell, launch: Launch, sink: OutputSink, signal: AbortSignal): Promise<Ended> {
  try {
    signal.throwIfAborted();
    using output = new Output(launch.folder);
    return await runInCell(cell, launch, output, sink, signal);
  } finally {
    await cell.close();
  }
}

async function runInCell(
  cell: Cell,
  launch: Launch,
  output: Output,
  sink: OutputSink,
  signal: AbortSignal,
): Promise<Ended> {
  const begin = performance.now();
  const child = spawnInCell(cell, launch, output);
  const exited = exitOf(child);
  const closed = closeOf(child, exited);
  output.read(sink);
  const watch = new Watch(cell, launch.limit, signal);
  try {
    const started = await watch.starting(Promise.race([launch.started(child), failedSpawn(exited)]));
    const code = await exited;
    const empty = await cell.end();
    await Promise.all([closed, output.closed()]);
    signal.throwIfAborted();
    output.end();
    const { timedOut } = watch;
    const { complaint, droppedBytes: droppedOutputBytes, droppedStderrBytes } = output;
    const wallMs = performance.now() - begin;
    return {
      code,
      started,
      timedOut,
      empty,
      usage: cell.usage(),
      wallMs,
      complaint,
      droppedOutputBytes,
      droppedStderrBytes,
    };
  } catch (error) {
    cell.kill();
    await exited.catch(() => {});
    await cell.end();
    signal.throwIfAborted();
    throw error;
  } finally {
    watch.stop();
    for (const stream of child.stdio) stream?.destroy();
  }
}

function spawnInCell(cell: Cell, launch: Launch, output: Output): ChildProcess {
  const cellFd = FIRST_FD + launch.fds.length;
  const [file = '', ...args] = cell.wrap(launch.argv, cellFd);
  const extra = [...launch.fds, ...Array.from({ length: cell.fdCount }, () => 'pipe' as const)];
  const child = spawnChild(file, args, {
    stdio: [launch.stdin.byteLength > 0 ? 'pipe' : 'ignore', ...output.fds, ...extra],
    // Never the manager's environment: the first process of a sandbox shows it to everybody inside.
    env: { PATH: SYSTEM_PATH },
    cwd: '/',
    detached: true,
  });
  for (const stream of child.stdio) stream?.on('error', () => {});
  cell.attach(child, cellFd);
  child.stdin?.end(launch.stdin);
  return child;
}

async function exitOf(child: ChildProcess): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.once('exit', (code, signal) =>
    resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
  );
  child.once('error', (error) =>
    reject(new PolarError('SANDBOX_FAILED', `the sandbox's launcher: ${error.message}`, { cause: error })),
  );
  promise.catch(() => {});
  return promise;
}

/** A launcher that ends early closes what `started` reads; only one that was never spawned does not. */
const failedSpawn = (exited: Promise<number>): Promise<never> =>
  exited.then(() => new Promise<never>(() => {}));

/** All pipes are read to their end; one that somebody outside holds open is not waited for longer than SANDBOX_END_MS. */
async function closeOf(child: ChildProcess, exited: Promise<number>): Promise<void> {
  const closed = once(child, 'close').catch(() => {});
  await exited.catch(() => {});
  await settledWithin(closed, SANDBOX_END_MS);
}
