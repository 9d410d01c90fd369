// A disk that was full leaves nats-server with streams that take no more, also when there is room again, until it is started
// anew: here it is, as soon as there is room.
import { statfs } from 'node:fs/promises';
import { json } from 'node:stream/consumers';
import { setTimeout } from 'node:timers';
import { complain } from '../output/say.ts';
import { getDirectly } from './get-directly.ts';
import { storeOf } from './nats-server.ts';
import type { LocalTopology } from './topology.ts';

const LOOK_MS = 2_000;
const ANSWER_MS = 1_000;
/** Below these a started server would soon stand still again. */
const ROOM_BYTES_MIN = 16 * 1024 * 1024;
const ROOM_FILES_MIN = 128;
/** Between a restart that did not help, as under a quota, and the next one: twice as long each time. */
const RESTART_WAIT_MS = { min: 2_000, max: 60_000 };
/** So long after a restart a server that is well stays so. */
const WELL_MS = 60_000;

/** Looks until it is disposed of, and says once what is wrong, until it was well for a while. */
export function watchDisk(
  { topology, monitorPort }: LocalTopology,
  restart: () => Promise<void>,
): Disposable {
  const folder = storeOf(topology.data_dir);
  const recovery = new Recovery();
  let over = false;
  const look = async (): Promise<void> => {
    const fault = await writeError(`http://127.0.0.1:${monitorPort}/healthz`);
    const { tell, restarts } = recovery.next(fault, await hasRoom(folder), performance.now());
    if (tell) {
      complain(
        `${fault}\nThe mesh takes no work until there is room in ${folder}; then it goes on by itself.`,
      );
    }
    if (restarts && !over) await restart();
  };
  const next = (): NodeJS.Timeout =>
    setTimeout(() => {
      void look().then(() => {
        if (!over) timer = next();
      });
    }, LOOK_MS).unref();
  let timer = next();
  return {
    [Symbol.dispose]() {
      over = true;
      clearTimeout(timer);
    },
  };
}

/** When to tell of a server that cannot write, and when to start it anew. */
export class Recovery {
  #told = false;
  #restartedMs = Number.NEGATIVE_INFINITY;
  #waitMs = 0;

  /** `fault`: why it cannot write; empty where it can, undefined where it does not answer. */
  next(fault: string | undefined, room: boolean, nowMs: number): { tell: boolean; restarts: boolean } {
    const sinceMs = nowMs - this.#restartedMs;
    if (fault === '' && sinceMs > WELL_MS) {
      this.#told = false;
      this.#waitMs = 0;
    }
    if (!fault) return { tell: false, restarts: false };
    const tell = !this.#told;
    this.#told = true;
    const restarts = room && sinceMs >= this.#waitMs;
    if (restarts) {
      this.#restartedMs = nowMs;
      this.#waitMs = Math.min(Math.max(2 * this.#waitMs, RESTART_WAIT_MS.min), RESTART_WAIT_MS.max);
    }
    return { tell, restarts };
  }
}

/** Of any stream, in the server's words. Empty: none; undefined: it does not answer. */
async function writeError(url: string): Promise<string | undefined> {
  try {
    const { error = '' } = (await json(await getDirectly(url, ANSWER_MS))) as { error?: string };
    return error.includes('write error') ? error : '';
  } catch {
    return undefined;
  }
}

/** Says so where there is no room: logs that could tell why a mesh did not start are empty then. */
export async function tellFullDisk(folder: string): Promise<void> {
  if (await hasRoom(folder)) return;
  complain(`${folder} has hardly any room: less than ${ROOM_BYTES_MIN} bytes, or ${ROOM_FILES_MIN} files`);
}

/** Some file systems count no files: they have 0 of 0. */
const hasRoom = (folder: string): Promise<boolean> =>
  statfs(folder).then(
    ({ bavail, bsize, files, ffree }) =>
      bavail * bsize >= ROOM_BYTES_MIN && (files === 0 || ffree >= ROOM_FILES_MIN),
    () => false,
  );
