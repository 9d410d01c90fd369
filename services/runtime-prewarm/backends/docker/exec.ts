// One command in a container: its output, its end, and the proof that nothing of it is left.
import type { Socket } from 'node:net';
import { settledWithin, sleep } from '../../../common/clock.ts';
import { PolarError } from '../../../common/errors.ts';
import { EXEC_OUTPUT_BYTES_MAX, SANDBOX_END_MS, SANDBOX_START_MS } from '../../../common/limits.ts';
import { BoundedOutput } from '../../domain/bounded-output.ts';
import {
  type Command,
  type CommandResult,
  memoryEnd,
  type NetworkUse,
  type OutputSink,
} from '../../domain/command.ts';
import { FrameReader } from '../../domain/docker-frames.ts';
import { unstartedExitCode } from '../../domain/oci-failure.ts';
import { openStdin } from '../../host/stdin-pipe.ts';
import { Watch } from '../../host/watch.ts';
import { type Container, containerEnded } from './container.ts';
import type { Dialect, ExecState } from './dialect.ts';
import type { Engine } from './engine.ts';

/** No engine starts a command sooner. */
const START_PAUSE_MS = 32;
/** An engine is asked after that of a command of which nothing is seen. */
const UNSEEN_MS = 128;
const PAUSE_MIN_MS = 4;
const PAUSE_MAX_MS = 100;

export interface DockerExec {
  readonly engine: Engine;
  readonly dialect: Dialect;
  readonly container: Container;
  readonly command: Command;
  readonly env: Readonly<Record<string, string>>;
  /** Inside. */
  readonly uid: number;
}

export type ExecEnd = Omit<CommandResult, keyof NetworkUse>;

/**
 * Throws SANDBOX_FAILED where the command could not be started through no fault of its own, RUNTIME_LOST where somebody has ended
 * the container under it, and the signal's reason.
 */
export async function execInContainer(
  exec: DockerExec,
  sink: OutputSink,
  signal: AbortSignal,
): Promise<ExecEnd> {
  const { container, command } = exec;
  const { group } = container;
  const all = AbortSignal.any([signal, container.gone]);
  all.throwIfAborted();
  const begin = performance.now();
  group.begin();
  const running = new RunningExec(exec, sink);
  const watch = new Watch(
    { kill: () => running.kill(), oomKills: () => group.oomKills() },
    command.limit,
    all,
  );
  try {
    const started = await watch.starting(running.start());
    if (started) await running.ended();
    watch.stop();
    const usage = group.usage();
    let empty = await group.end();
    // Its first process goes before those that it takes along: the command did not end by itself.
    if (!group.has(container.pid) && usage.oomKills === 0) throw containerEnded();
    if (!empty) empty = await container.end();
    const code = await running.exitCode(watch.timedOut || usage.oomKills > 0);
    all.throwIfAborted();
    running.end();
    const { peakMemoryBytes, cpuMs } = usage;
    return {
      ...{
        exitCode: code,
        timedOut: watch.timedOut,
        ...memoryEnd(usage),
        empty,
        peakMemoryBytes,
        cpuMs,
      },
      ...{ wallMs: Math.round(performance.now() - begin), droppedOutputBytes: running.droppedBytes },
      droppedStderrBytes: running.droppedStderrBytes,
    };
  } catch (error) {
    await group.end();
    all.throwIfAborted();
    throw error;
  } finally {
    watch.stop();
    running.close();
  }
}

class RunningExec {
  readonly #exec: DockerExec;
  readonly #output: BoundedOutput;
  readonly #frames: FrameReader;
  #id = '';
  #pid = 0;
  #killing = false;
  /** What came of one whose process was not seen: of a quick one, or of the engine that could not start it. */
  readonly #held: (readonly ['stdout' | 'stderr', Uint8Array])[] = [];
  #socket: Socket | undefined;
  #stdin: Socket | undefined;
  #closed: Promise<void> = Promise.resolve();

  constructor(exec: DockerExec, sink: OutputSink) {
    this.#exec = exec;
    this.#output = new BoundedOutput(sink, EXEC_OUTPUT_BYTES_MAX);
    this.#frames = new FrameReader((stream, bytes) => this.#take(stream, bytes));
  }

  get droppedBytes(): number {
    return this.#output.droppedBytes;
  }

  get droppedStderrBytes(): number {
    return this.#output.droppedStderrBytes;
  }

  /** True when the command was seen to run. */
  async start(): Promise<boolean> {
    const { engine, container, command, env, uid } = this.#exec;
    const { argv, cwd, stdin } = command;
    const made = await engine.call<{ Id: string }>('POST', `/containers/${container.id}/exec`, {
      body: {
        ...{ Cmd: argv, WorkingDir: cwd, User: `${uid}:${uid}`, Tty: false },
        ...{ AttachStdin: stdin.byteLength > 0, AttachStdout: true, AttachStderr: true },
        Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      },
      // One that was made without an answer is never started, and goes with its container.
      repeatable: true,
    });
    this.#id = made.Id;
    const socket = await engine.hijack(`/exec/${made.Id}/start`, { Detach: false, Tty: false });
    this.#socket = socket;
    this.#closed = new Promise((resolve) => socket.once('close', () => resolve()));
    this.#pid = await this.#startedPid();
    if (stdin.byteLength > 0) this.#feed(stdin);
    // Not before: what the engine says of a command that it could not start comes the same way.
    socket.on('data', (chunk: Buffer) => this.#frames.push(chunk));
    return this.#pid > 0;
  }

  /** The command's first process has ended. What it has started may hold its output open: the end of that says nothing. */
  async ended(): Promise<void> {
    const { group } = this.#exec.container;
    for (let pauseMs = PAUSE_MIN_MS; group.has(this.#pid); pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      if (this.#killing) group.kill();
      if (this.#socket?.closed) await sleep(pauseMs);
      else await settledWithin(this.#closed, pauseMs);
    }
  }

  kill(): void {
    this.#killing = true;
    this.#exec.container.group.kill();
  }

  /** All output is read. Throws SANDBOX_FAILED. */
  async exitCode(killedHere: boolean): Promise<number> {
    await settledWithin(this.#closed, SANDBOX_END_MS);
    const { dialect } = this.#exec;
    const { ExitCode } = await this.#whenTrue(SANDBOX_END_MS, (state) => dialect.hasEnded(state));
    const code = ExitCode ?? 0;
    if (this.#pid > 0 || killedHere) return code;
    const said = Buffer.concat(this.#held.map(([, bytes]) => bytes));
    if (!dialect.couldNotStart(code, said.toString())) {
      for (const [stream, bytes] of this.#held) this.#output.take(stream, bytes);
      return code;
    }
    const own = unstartedExitCode(said.toString());
    if (own === undefined) {
      const why = said.toString().trim();
      throw new PolarError('SANDBOX_FAILED', `${dialect.name} could not start the command: ${why}`);
    }
    this.#output.take('stderr', said);
    return own;
  }

  /** Reads no more, and hands on what is held for the end: of a command that has a result, which tells `droppedBytes`. */
  end(): void {
    this.#socket?.destroy();
    this.#output.end();
  }

  /** Without `end` only what nothing was dropped before is handed on. */
  close(): void {
    this.#stdin?.destroy();
    this.#socket?.destroy();
    this.#output.endUntold();
  }

  /**
   * Not by the engine: what a command has not read when it ends takes the end of its output along in Podman, and Docker waits
   * for it to be read. The engine's own end is closed behind ours, so that the command sees the end of it once.
   */
  #feed(stdin: Uint8Array): void {
    const { group } = this.#exec.container;
    this.#stdin = openStdin(this.#pid);
    // Else the number may be another process's by now.
    if (!group.has(this.#pid)) this.#stdin?.destroy();
    else if (this.#stdin === undefined) return void this.#socket?.end(stdin);
    else this.#stdin.end(stdin);
    this.#socket?.end();
  }

  #take(stream: 'stdout' | 'stderr', bytes: Uint8Array): void {
    if (this.#pid > 0) this.#output.take(stream, bytes);
    else this.#held.push([stream, bytes]);
  }

  async #startedPid(): Promise<number> {
    const { container, dialect } = this.#exec;
    await this.#begun();
    const hasBegun = (state: ExecState): boolean => {
      if (this.#killing) container.group.kill();
      return state.Pid > 0 || dialect.hasEnded(state);
    };
    return (await this.#whenTrue(SANDBOX_START_MS, hasBegun, START_PAUSE_MS)).Pid;
  }

  /** Each look at the engine costs it as much as us, one at the container nearly nothing: what enters that is no command yet. */
  async #begun(): Promise<void> {
    const { group } = this.#exec.container;
    const until = performance.now() + UNSEEN_MS;
    for (let isIn = false; !isIn && !this.#socket?.closed && performance.now() < until; ) {
      isIn = group.hasOthers;
      if (this.#killing) group.kill();
      await settledWithin(this.#closed, START_PAUSE_MS);
    }
  }

  async #whenTrue(
    limitMs: number,
    test: (state: ExecState) => boolean,
    firstPauseMs = PAUSE_MIN_MS,
  ): Promise<ExecState> {
    const until = performance.now() + limitMs;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      const state = await this.#exec.engine.call<ExecState>('GET', `/exec/${this.#id}/json`);
      if (test(state)) return state;
      if (performance.now() > until) {
        throw new PolarError(
          'SANDBOX_FAILED',
          `${this.#exec.dialect.name} has not told of the command within ${limitMs} ms`,
        );
      }
      await sleep(pauseMs);
    }
  }
}
