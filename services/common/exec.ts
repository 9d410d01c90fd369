// One command in a sandbox of this node: output as it comes, the result at the end.
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Client } from '@connectrpc/connect';
import type {
  ExecResult,
  RuntimeService,
} from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { sleep } from './clock.ts';
import { asPolarError, PolarError } from './errors.ts';
import { EXEC_REPLY_GRACE_MS, RPC_TIMEOUT_MS } from './limits.ts';

/** Before a command that could not be told of its limit is told again. */
const LIMIT_PAUSE_MS = 250;

export type Runtimes = Client<typeof RuntimeService>;

export interface ExecInput {
  readonly runtimeId: string;
  readonly argv: readonly string[];
  readonly timeoutMs: number;
  /** Default: the runtime's workdir. */
  readonly cwd?: string;
  /** Added to the runtime's environment, above its own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Added where the runtime has no variable of that name. */
  readonly defaultEnv?: Readonly<Record<string, string>>;
  /** The lease, from now on; default: it stays as it is. */
  readonly leaseMs?: number;
  readonly stdin?: Uint8Array;
  readonly mounts?: readonly { readonly source: string; readonly target: string }[];
  /** Written before the command starts. */
  readonly files?: readonly {
    readonly target: string;
    readonly content: Uint8Array;
    readonly mode?: number;
  }[];
  /** The command can reach the LLM proxy. */
  readonly proxyAccess?: boolean;
  /** Default: the time is over after `timeoutMs`. */
  readonly clock?: ExecClock;
}

/** Tells what is left of a command's time, anew whenever that changes otherwise than by its passing. */
export interface ExecClock {
  follow(renew: (leftMs: number) => void): Disposable;
}

export interface ExecSinks {
  readonly stdout: (bytes: Uint8Array) => void;
  readonly stderr: (bytes: Uint8Array) => void;
}

export interface ExecOutput {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  readonly result: ExecResult;
}

/**
 * Run a command and wait for its end; the process tree is killed when the signal aborts. A command that fails is a
 * result. Throws the signal's reason, RUNTIME_LOST when the sandbox or its manager went away, or what the manager said.
 */
export async function execStreamed(
  runtimes: Runtimes,
  request: ExecInput,
  sinks: ExecSinks,
  signal: AbortSignal,
): Promise<ExecResult> {
  signal.throwIfAborted();
  const { timeoutMs, leaseMs, clock, ...command } = request;
  const { runtimeId } = command;
  using call = new Call(timeoutMs, signal);
  let [limitMs, isAsked] = [timeoutMs, false];
  using _ = clock?.follow((leftMs) => {
    call.renew(leftMs);
    limitMs = leftMs;
    // Before, there is no command that it could be told of.
    if (isAsked) void tellLimit(runtimes, runtimeId, leftMs, call);
  });
  let result: ExecResult | undefined;
  try {
    isAsked = true;
    const events = runtimes.exec(
      {
        ...command,
        argv: [...command.argv],
        env: { ...command.env },
        defaultEnv: { ...command.defaultEnv },
        mounts: [...(command.mounts ?? [])],
        files: [...(command.files ?? [])],
        timeout: durationFromMs(limitMs),
        ...(leaseMs !== undefined && { lease: durationFromMs(leaseMs) }),
      },
      { signal: call.signal },
    );
    // To its end: a stream that is left is reset, and a server cuts a connection on which that happens often.
    for await (const { event } of events) {
      if (event.case === 'result') result = event.value;
      else if (event.case !== undefined) sinks[event.case](event.value);
    }
  } catch (error) {
    // A sink may have thrown: the stream, and its command, would go on to their limit.
    call.end();
    signal.throwIfAborted();
    if (result === undefined) throw call.isSilent ? silent(error) : sandboxError(error);
  }
  if (result !== undefined) return result;
  throw new PolarError('RUNTIME_LOST', 'the sandbox gave no result for its command');
}

/**
 * Until it is told, it has ended or another limit is to be told: a command that ends by its old one while model calls are held
 * would seem to have used its time up. One that has not begun yet, as its files are on their way, is told of when it has.
 */
async function tellLimit(
  { limitExec }: Runtimes,
  runtimeId: string,
  leftMs: number,
  call: Call,
): Promise<void> {
  const untilMs = performance.now() + leftMs;
  const signal = call.newest();
  for (let ms = leftMs; ms > 0 && !signal.aborted; ms = Math.round(untilMs - performance.now())) {
    const limit = { runtimeId, timeout: durationFromMs(ms) };
    const told = await limitExec(limit, { signal, timeoutMs: RPC_TIMEOUT_MS }).catch(asPolarError);
    if (told instanceof PolarError ? !told.retryable : told.running) return;
    await sleep(LIMIT_PAUSE_MS, signal);
  }
}

const silent = (cause: unknown): PolarError =>
  new PolarError('RUNTIME_LOST', 'the sandbox did not answer within the limit of its command', { cause });

/** Its signal aborts when the caller leaves, and when the sandbox says nothing for EXEC_REPLY_GRACE_MS after the limit. */
class Call implements Disposable {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #leave = (): void => this.#controller.abort(this.#caller.reason);
  #timer: NodeJS.Timeout | undefined;
  #telling = new AbortController();
  #isSilent = false;

  constructor(limitMs: number, caller: AbortSignal) {
    this.#caller = caller;
    caller.addEventListener('abort', this.#leave, { once: true });
    this.renew(limitMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  renew(limitMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isSilent = true;
      this.#controller.abort();
    }, limitMs + EXEC_REPLY_GRACE_MS);
  }

  end(): void {
    this.#controller.abort();
  }

  /** Aborts with the next one of these, and at the end of the call. */
  newest(): AbortSignal {
    this.#telling.abort();
    this.#telling = new AbortController();
    return this.#telling.signal;
  }

  [Symbol.dispose](): void {
    this.#telling.abort();
    clearTimeout(this.#timer);
    this.#caller.removeEventListener('abort', this.#leave);
  }
}

/** The same with its output in memory: each stream has EXEC_OUTPUT_BYTES_MAX, the result counts what was dropped. */
export async function execCollected(
  runtimes: Runtimes,
  request: ExecInput,
  signal: AbortSignal,
): Promise<ExecOutput> {
  const out: Uint8Array[] = [];
  const err: Uint8Array[] = [];
  const sinks: ExecSinks = { stdout: (bytes) => out.push(bytes), stderr: (bytes) => err.push(bytes) };
  const result = await execStreamed(runtimes, request, sinks, signal);
  return { stdout: Buffer.concat(out), stderr: Buffer.concat(err), result };
}

/** What a call to the manager of sandboxes threw, as what it means to a lease: a manager takes its sandboxes with it. */
export function sandboxError(thrown: unknown): PolarError {
  const error = asPolarError(thrown);
  const { reason, message } = error;
  const gone = reason === 'NODE_LOST' || reason === 'NOT_FOUND';
  return gone ? new PolarError('RUNTIME_LOST', message, { cause: error }) : error;
}
