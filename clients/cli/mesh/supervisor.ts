// Keeps the processes of a local mesh running: starts, watches, restarts, stops in order.
import { sleep } from '../../../services/common/clock.ts';
import { PolarError, REASONS, type Reason } from '../../../services/common/errors.ts';
import { complain } from '../output/say.ts';
import { type Child, endOf } from './child.ts';
import { LogFiles, lastWords, sizeOf } from './logs.ts';

/** Restarts of one process within a minute; then the mesh stops. */
const RESTARTS_PER_MINUTE_MAX = 10;
/** Pause before a restart, times the restarts of the last minute. */
const RESTART_PAUSE_MS = 200;
const MINUTE_MS = 60_000;

/** What is stopped together, the first first: nodes tell the mesh how their sessions ended, and all of it lies in the store. */
const STOPPED = ['node', 'mesh', 'store'] as const;

export interface Supervised {
  readonly name: string;
  readonly layer: (typeof STOPPED)[number];
  readonly start: () => Child | Promise<Child>;
  readonly logFile: string;
}

export class Supervisor {
  readonly #running = new Map<string, Child>();
  readonly #added: Supervised[] = [];
  readonly #failed = Promise.withResolvers<never>();
  readonly #logs = new LogFiles();
  #settled = false;
  #stopping = false;

  constructor() {
    this.#failed.promise.catch(() => {});
  }

  /** Rejects when a process cannot be kept running. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Process ids by name. */
  get pids(): Record<string, number> {
    return Object.fromEntries([...this.#running].map(([name, child]) => [name, child.pid]));
  }

  /** Start a process and keep it running. */
  async add(supervised: Supervised): Promise<void> {
    const { name, start, logFile } = supervised;
    this.#logs.add(logFile);
    const logStart = sizeOf(logFile);
    this.#added.push(supervised);
    const child = await start();
    this.#running.set(name, child);
    this.#keep(supervised, child, logStart).catch((error) => this.#failed.reject(error));
  }

  /** All have started: from now on what ends is started again. Before, it is a failure of the whole. */
  settled(): void {
    this.#settled = true;
  }

  /** End a process, so that it is started again. */
  async restart(name: string): Promise<void> {
    if (!this.#stopping) await this.#running.get(name)?.stop();
  }

  async #keep({ name, start, logFile }: Supervised, first: Child, logStart: number): Promise<void> {
    let child = first;
    const ends: number[] = [];
    for (;;) {
      const code = await child.ended;
      if (this.#stopping) return;
      if (!this.#settled) throw startFailure(name, code, logFile, logStart);
      ends.push(performance.now());
      const recent = ends.filter((at) => performance.now() - at < MINUTE_MS).length;
      if (recent > RESTARTS_PER_MINUTE_MAX) {
        throw new PolarError('INTERNAL', `${name} ended ${recent} times within a minute; see ${logFile}`);
      }
      complain(`${name} ended (${endOf(code)}) and is started again; see ${logFile}`);
      await sleep(RESTART_PAUSE_MS * recent);
      if (this.#stopping) return;
      child = await start();
      // Nobody else knows of it yet.
      if (this.#stopping) return await child.stop();
      this.#running.set(name, child);
    }
  }

  /** Stop everything, layer by layer. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const layer of STOPPED) {
      const those = this.#added.filter((one) => one.layer === layer);
      await Promise.all(those.map(({ name }) => this.#running.get(name)?.stop()));
    }
    this.#logs[Symbol.dispose]();
  }
}

/** The reason that a service gave, where it gave one. */
function startFailure(name: string, code: number, logFile: string, logStart: number): PolarError {
  const said = lastWords(logFile, logStart);
  const [, reason = '', message = said] = /^([A-Z_]+): ([\s\S]*)$/.exec(said) ?? [];
  const known = Object.hasOwn(REASONS, reason) ? (reason as Reason) : 'INTERNAL';
  const why = message === '' ? '' : `: ${message}`;
  return new PolarError(known, `${name} ended (${endOf(code)}) while it started${why}\nsee ${logFile}`);
}
