// One command in a root file system: descriptors, the hand-shake while its launcher waits, and what its end means.

import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { PolarError } from '../../../common/errors.ts';
import type { Cell } from '../../containment/containment.ts';
import { type LaunchStatus, readStatus } from '../../domain/bwrap-status.ts';
import {
  type Command,
  type CommandResult,
  memoryEnd,
  NETWORK_UNUSED,
  type NetworkUse,
  type OutputSink,
} from '../../domain/command.ts';
import type { LaunchFds, LaunchOptions } from '../../domain/launch-options.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import { SANDBOX_UID, SANDBOX_UID_COUNT } from '../../host/host.ts';
import type { NetnsBroker } from '../../host/netns-broker.ts';
import { type Ended, run } from '../../host/run.ts';
import { type CommandNetwork, openNetwork } from '../network.ts';

const FDS: LaunchFds = { status: 3, args: 4, block: 5, seccomp: 6, unread: 7 };
/** Launchers tell some hundred characters. */
const STATUS_CHARS_MAX = 4_096;

/** A program that makes the namespaces of a sandbox and runs one command in them. */
export interface Launcher {
  readonly name: string;
  /** Called with `--args FD -- COMMAND` behind it. */
  readonly argv: readonly string[];
  /** File with a program for the kernel's filter of system calls. */
  readonly seccompFile: string;
  /** Of a command that sets none of it. */
  readonly baseEnv: Readonly<Record<string, string>>;
  /** What it reads from its descriptor for arguments. */
  args(options: LaunchOptions, fds: LaunchFds): string;
  /** That of the command, from what the launcher told and how it ended; undefined: the command did not come to run. */
  exitCode(status: LaunchStatus, ended: Ended): number | undefined;
}

export interface RootLaunch {
  readonly launcher: Launcher;
  openCell(): Cell;
  /** See Launch. */
  readonly folder: string;
  /** Everything before the launcher's own arguments. */
  readonly prefix: readonly string[];
  readonly options: LaunchOptions;
  readonly command: Command;
  readonly broker: NetnsBroker;
  readonly proxy: ProxyConnect;
}

/** See Box.exec. */
export async function launchInRoot(
  launch: RootLaunch,
  sink: OutputSink,
  signal: AbortSignal,
): Promise<CommandResult> {
  const { launcher, command, options } = launch;
  using opened = new DisposableStack();
  const seccomp = opened.adopt(openSync(launcher.seccompFile, 'r'), closeSync);
  const unread = opened.adopt(openSync('/dev/null', 'w'), closeSync);
  const status = new StatusReader();
  let network: CommandNetwork | undefined;
  const started = async (child: ChildProcess): Promise<boolean> => {
    const pipe = (fd: number): Writable => child.stdio[fd] as Writable;
    pipe(FDS.args).end(launcher.args(options, FDS));
    const pid = await status.pid(child.stdio[FDS.status] as Readable);
    if (pid === undefined) return false;
    if (options.idMap === 'outside') writeIdMaps(pid);
    // Before anything runs inside, so that the first connection finds it.
    network = await openNetwork(launch, pid, command);
    pipe(FDS.block).end('1');
    return true;
  };
  opened.defer(() => network?.close());
  const argv = [...launch.prefix, '--args', String(FDS.args), '--', ...command.argv];
  const fds = ['pipe', 'pipe', 'pipe', seccomp, unread] as const;
  const { stdin, limit } = command;
  // Not before: it is what closes the cell.
  const ended = await run(
    launch.openCell(),
    { argv, folder: launch.folder, stdin, limit, fds, started },
    sink,
    signal,
  );
  return { ...resultOf(launcher, ended, status.last), ...((await network?.result()) ?? NETWORK_UNUSED) };
}

function resultOf(
  launcher: Launcher,
  ended: Ended,
  status: LaunchStatus,
): Omit<CommandResult, keyof NetworkUse> {
  const { timedOut, empty, usage, wallMs, droppedOutputBytes, droppedStderrBytes, complaint } = ended;
  const killedHere = timedOut || usage.oomKills > 0;
  const isUntold = status.exitCode === undefined;
  const exitCode = killedHere && isUntold ? ended.code : launcher.exitCode(status, ended);
  if (exitCode === undefined) {
    throw new PolarError('SANDBOX_FAILED', `${launcher.name} failed with ${ended.code}: ${complaint.trim()}`);
  }
  return {
    exitCode,
    timedOut,
    ...memoryEnd(usage),
    empty,
    peakMemoryBytes: usage.peakMemoryBytes,
    cpuMs: usage.cpuMs,
    wallMs: Math.round(wallMs),
    droppedOutputBytes,
    droppedStderrBytes,
  };
}

/** The host's root gives the sandbox its users: root inside is SANDBOX_UID outside. */
function writeIdMaps(pid: number): void {
  const map = `0 ${SANDBOX_UID} ${SANDBOX_UID_COUNT}\n`;
  for (const name of ['uid_map', 'gid_map']) writeFileSync(`/proc/${pid}/${name}`, map);
}

class StatusReader {
  #text = '';

  get last(): LaunchStatus {
    return readStatus(this.#text);
  }

  /** Pid 1 of the sandbox; undefined when the launcher ends before it has one. */
  pid(stream: Readable): Promise<number | undefined> {
    return new Promise((resolve) => {
      stream.setEncoding('utf8');
      stream.on('data', (chunk: string) => {
        this.#text += chunk;
        const { childPid } = this.last;
        if (childPid !== undefined) resolve(childPid);
        if (this.#text.length > STATUS_CHARS_MAX) stream.destroy();
      });
      stream.once('close', () => resolve(undefined));
    });
  }
}
