// Runs a cell against a candidate: engine and load on one core, what is measured on the other.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Candidate } from './candidates.ts';
import type { Cell, Figures, Sketch } from './cells.ts';
import type { EnginePace } from './engine.ts';
import type { Outcome, Plan } from './load.ts';
import { busyMs, cpuMsOf, residentMiBOf } from './processes.ts';

const PACE: EnginePace = { chunks: 200, gapMs: 20 };
const SAMPLE_MS = 250;
const SETTLE_MS = 300;

export interface Sample {
  readonly figures: Figures;
  readonly errors: Readonly<Record<string, number>>;
  /** CPU that the rest of the machine used meanwhile, in cores. */
  readonly foreign: number;
}

/** Engine and load generator, for a whole run. */
export class Bench implements AsyncDisposable {
  readonly enginePort: number;
  readonly #engine: ChildProcess;
  readonly #load: ChildProcess;

  private constructor(engine: ChildProcess, enginePort: number, load: ChildProcess) {
    this.#engine = engine;
    this.enginePort = enginePort;
    this.#load = load;
  }

  static async start(): Promise<Bench> {
    const engine = fork(new URL('engine.ts', import.meta.url).pathname);
    const [port] = (await once(engine, 'message')) as [number];
    return new Bench(engine, port, fork(new URL('load.ts', import.meta.url).pathname));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of [this.#engine, this.#load]) {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    }
  }

  async pace(pace: EnginePace): Promise<void> {
    this.#engine.send(pace);
    await once(this.#engine, 'message');
  }

  async sample(cell: Cell, candidate: Candidate): Promise<Sample> {
    await this.pace(cell.pace ?? PACE);
    const { pid } = candidate;
    await this.#prepare(candidate, cell.plans);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    let residentMiB = 0;
    const watch = setInterval(() => {
      if (pid !== undefined) residentMiB = Math.max(residentMiB, residentMiBOf(pid));
    }, SAMPLE_MS);
    const before = this.#cost(candidate);
    const outcomes = await this.#go();
    const after = this.#cost(candidate);
    clearInterval(watch);
    await candidate.closeSessions();
    const cpuMs = after.own - before.own;
    const known = after.known - before.known;
    return {
      figures: cell.figures({ outcomes, cpuMs, residentMiB }),
      errors: Object.assign({}, ...outcomes.map(({ errors }) => errors)),
      foreign: Math.max(0, after.busy - before.busy - known) / (after.at - before.at),
    };
  }

  /** Calls without a measurement; returns the errors. */
  async play(candidate: Candidate, sketch: Sketch): Promise<Readonly<Record<string, number>>> {
    await this.#prepare(candidate, [sketch]);
    const outcomes = await this.#go();
    await candidate.closeSessions();
    return Object.assign({}, ...outcomes.map(({ errors }) => errors));
  }

  async #prepare(candidate: Candidate, sketches: readonly Sketch[]): Promise<void> {
    const { port, key } = candidate;
    const plans: Plan[] = [];
    for (const { sessions, ...sketch } of sketches) {
      plans.push({ ...sketch, port, key, paths: await candidate.paths(sessions) });
    }
    this.#load.send(plans);
    await once(this.#load, 'message');
  }

  async #go(): Promise<readonly Outcome[]> {
    this.#load.send('go');
    const [outcomes] = (await once(this.#load, 'message')) as [readonly Outcome[]];
    return outcomes;
  }

  #cost({ pid }: Candidate): { own: number; known: number; busy: number; at: number } {
    // The whole tree of this process: engine, load, nats-server, candidate.
    return {
      own: pid === undefined ? 0 : cpuMsOf(pid),
      known: cpuMsOf(process.pid),
      busy: busyMs(),
      at: performance.now(),
    };
  }
}
