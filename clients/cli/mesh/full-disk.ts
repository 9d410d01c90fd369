// A disk that was full leaves nats-server with streams that take no more, also when there is room again, until it is started
// anew: here it is, as soon as there is room.
import { statfs } from 'node:fs/promises';
import { setTimeout } from 'node:timers';
import { complain } from '../output/say.ts';
import { storeOf } from './nats-server.ts';
import type { LocalTopology } from './topology.ts';

const LOOK_MS = 2_000;
const ANSWER_MS = 1_000;
/** Below this a started server would soon stand still again. */
const ROOM_BYTES_MIN = 16 * 1024 * 1024;

/** Looks until it is disposed of, and says once what is wrong. */
export function watchDisk(
  { topology, monitorPort }: LocalTopology,
  restart: () => Promise<void>,
): Disposable {
  const folder = storeOf(topology.data_dir);
  let told = false;
  let over = false;
  const look = async (): Promise<void> => {
    const fault = await writeError(`http://127.0.0.1:${monitorPort}/healthz`);
    if (fault !== undefined && !told) {
      complain(
        `${fault}\nThe mesh takes no work until there is room in ${folder}; then it goes on by itself.`,
      );
    }
    told = fault !== undefined;
    if (told && (await freeBytes(folder)) >= ROOM_BYTES_MIN && !over) await restart();
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

/** Of any stream, in the server's words. */
async function writeError(url: string): Promise<string | undefined> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
    const { error = '' } = (await answer.json()) as { error?: string };
    return error.includes('write error') ? error : undefined;
  } catch {
    return undefined;
  }
}

const freeBytes = (folder: string): Promise<number> =>
  statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
