// Watchers of tasks: each has a bounded list of changes that it has not sent yet.
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { Deadline } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { WATCH_QUEUE_MAX } from '../../common/limits.ts';
import { allEnded, type SessionChange } from '../domain/state.ts';

export class Watcher {
  #waiting: SessionRecord[] = [];
  #overflown = false;
  #wake = (): void => {};

  push(record: SessionRecord): void {
    if (this.#waiting.length >= WATCH_QUEUE_MAX) {
      this.#overflown = true;
      this.#waiting = [];
    }
    if (!this.#overflown) this.#waiting.push(record);
    this.#wake();
  }

  /** Changes since the last call, after at most `ms`; none: nothing changed. Throws WATCH_OVERFLOW. */
  async next(ms: number, signal: AbortSignal): Promise<SessionRecord[]> {
    if (this.#waiting.length === 0 && !this.#overflown) {
      using over = new Deadline(ms, signal);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      over.signal.addEventListener('abort', () => resolve(), { once: true });
      if (!over.signal.aborted) await promise;
    }
    if (this.#overflown) {
      throw new PolarError(
        'WATCH_OVERFLOW',
        `more than WATCH_QUEUE_MAX (${WATCH_QUEUE_MAX}) changes were waiting for this watcher; call again`,
      );
    }
    const changes = this.#waiting;
    this.#waiting = [];
    return changes;
  }
}

export class Watchers {
  readonly #byTask = new Map<string, Set<Watcher>>();
  /** Of those that wait for no more than the end. */
  readonly #ends = new Map<string, Set<() => void>>();

  open(taskId: string): Watcher {
    const watcher = new Watcher();
    const watchers = this.#byTask.get(taskId) ?? new Set();
    this.#byTask.set(taskId, watchers.add(watcher));
    return watcher;
  }

  close(taskId: string, watcher: Watcher): void {
    const watchers = this.#byTask.get(taskId);
    watchers?.delete(watcher);
    if (watchers?.size === 0) this.#byTask.delete(taskId);
  }

  /** `ended` is called when all sessions of the task have ended, until it is disposed of. */
  atEnd(taskId: string, ended: () => void): Disposable {
    const all = this.#ends.get(taskId) ?? new Set();
    this.#ends.set(taskId, all.add(ended));
    return {
      [Symbol.dispose]: () => {
        all.delete(ended);
        if (all.size === 0) this.#ends.delete(taskId);
      },
    };
  }

  changed({ task, after }: SessionChange): void {
    const { taskId } = task.record;
    for (const watcher of this.#byTask.get(taskId) ?? []) watcher.push(after);
    if (allEnded(task)) for (const ended of this.#ends.get(taskId) ?? []) ended();
  }
}
