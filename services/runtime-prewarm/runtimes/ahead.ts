// Sandboxes of evaluations, made while the attempt waits and runs, so that grading begins at once. An attempt wishes for one
// when the sandbox of its run is ready; so many at once are made or wait, the longest-wished first. Each belongs to the run's
// sandbox: when that goes, it goes.
import { equals } from '@bufbuild/protobuf';
import { RuntimeSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { abortable, Deadline } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import type { Logger } from '../../common/logger.ts';
import type { AcquireOptions } from '../domain/lease.ts';
import * as events from '../events.ts';
import type { Runtime } from './runtime.ts';
import type { RuntimeTable } from './table.ts';

export interface AheadOptions {
  readonly runtimes: RuntimeTable;
  /** Made or waiting, and not taken by their evaluation yet. */
  readonly max: number;
  /** False: nothing is begun ahead, as runs need what is left. */
  readonly hasRoom: () => boolean;
  readonly log: Logger;
}

interface Wish {
  /** The sandbox of the run. */
  readonly run: Runtime;
  readonly options: AcquireOptions;
  readonly stop: AbortController;
  /** Undefined until it is begun; the sandbox, or undefined where it could not be made. */
  making: Promise<Runtime | undefined> | undefined;
  /** Evaluations that wait for it: with one, it does not count here any more. The first that comes to it has it. */
  claims: number;
}

export class Ahead {
  readonly #options: AheadOptions;
  /** By attempt, the longest-wished first. */
  readonly #wishes = new Map<string, Wish>();

  constructor(options: AheadOptions) {
    this.#options = options;
    options.runtimes.onRemoved = (runtime) => this.#removed(runtime);
  }

  /**
   * The sandbox of a run is ready; its evaluation may prepare for so long. Nothing is made ahead of one that is not isolated:
   * its commands could read what the evaluation has.
   */
  wish(run: Runtime, timeoutMs: number): void {
    const { spec, owner, ref, leaseMs } = run.options;
    const key = keyOf(owner);
    if (!run.isolated) return;
    if (this.#options.max === 0 || !this.#options.runtimes.has(run) || this.#wishes.has(key)) return;
    const wish: Wish = {
      run,
      options: {
        ...{ spec, leaseMs, timeoutMs, forEvaluation: true },
        owner: { ...owner, purpose: 'evaluate' },
        ...(ref && { ref }),
        isPatient: () => wish.claims === 0,
      },
      stop: new AbortController(),
      making: undefined,
      claims: 0,
    };
    this.#wishes.set(key, wish);
    this.#begin();
  }

  /**
   * The sandbox that was made ahead of what is asked for, leased as asked; it is waited for while it is in the making.
   * Undefined: there is none, or it could not be made, and what is left of the time is the caller's. Throws PREPARE_TIMEOUT.
   */
  async claim(asked: AcquireOptions, signal: AbortSignal): Promise<Runtime | undefined> {
    const key = keyOf(asked.owner);
    const wish = this.#wishes.get(key);
    if (wish === undefined || !isSame(wish.options, asked)) return undefined;
    if (wish.making === undefined) {
      this.#drop(key, wish);
      return undefined;
    }
    const made = await this.#wait(key, wish, wish.making, asked.timeoutMs, signal);
    if (made === undefined || this.#wishes.get(key) !== wish) return undefined;
    this.#wishes.delete(key);
    if (!this.#options.runtimes.has(made)) return undefined;
    made.lease(asked.leaseMs);
    return made;
  }

  /** Where the caller leaves, the next one finds it. */
  async #wait(
    key: string,
    wish: Wish,
    making: Promise<Runtime | undefined>,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Runtime | undefined> {
    using deadline = new Deadline(timeoutMs, signal);
    wish.claims++;
    this.#begin();
    try {
      return await abortable(making, deadline.signal);
    } catch (error) {
      wish.claims--;
      if (!deadline.isOver) throw error;
      this.#drop(key, wish);
      throw new PolarError('PREPARE_TIMEOUT', `the sandbox was not prepared within ${timeoutMs} ms`);
    }
  }

  #begin(): void {
    const { max, hasRoom } = this.#options;
    const all = [...this.#wishes];
    let begun = all.filter(([, { making, claims }]) => making !== undefined && claims === 0).length;
    for (const [key, wish] of all) {
      if (wish.making !== undefined) continue;
      if (begun >= max || !hasRoom()) return;
      wish.making = this.#make(key, wish);
      begun++;
    }
  }

  async #make(key: string, wish: Wish): Promise<Runtime | undefined> {
    const { runtimes, log } = this.#options;
    try {
      return await runtimes.acquire(wish.options, wish.stop.signal);
    } catch (error) {
      // The evaluation tries itself, and says why it could not.
      events.notMadeAhead(log, wish.options.owner, asPolarError(error));
      if (this.#wishes.get(key) === wish) this.#wishes.delete(key);
      this.#begin();
      return undefined;
    }
  }

  #removed(runtime: Runtime): void {
    const key = keyOf(runtime.options.owner);
    const wish = this.#wishes.get(key);
    if (wish?.run === runtime || wish?.options === runtime.options) this.#drop(key, wish);
  }

  #drop(key: string, wish: Wish): void {
    const { runtimes } = this.#options;
    this.#wishes.delete(key);
    wish.stop.abort(new PolarError('RUNTIME_LOST', 'the attempt needs it no more'));
    void wish.making?.then((made) => made && runtimes.release(made.id));
    this.#begin();
  }
}

const keyOf = ({ sessionId, attempt }: AcquireOptions['owner']): string => `${sessionId}.${attempt}`;

/** A task's evaluation asks for nothing else; somebody may. */
function isSame(wished: AcquireOptions, asked: AcquireOptions): boolean {
  if (asked.owner.purpose !== wished.owner.purpose || !asked.forEvaluation) return false;
  if (asked.spec === undefined || wished.spec === undefined) return asked.spec === wished.spec;
  return equals(RuntimeSpecSchema, asked.spec, wished.spec);
}
