// Watchers of tasks: each has a bounded list of changes that it has not sent yet.
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { Deadline } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { WATCH_QUEUE_MAX } from '../../common/limits.ts';
import type { SessionChange } from '../domain/state.ts';

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

  changed({ task, after }: SessionChange): void {
    for (const watcher of this.#byTask.get(task.record.taskId) ?? []) watcher.push(after);
  }
}
