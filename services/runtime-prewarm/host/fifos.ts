// Pipes for the output of sandboxes. The sockets that Node.js gives its children cannot be opened again, and a script's
// `> /dev/stderr` does that; a named pipe can, by its owner.
import { type ExecFileException, execFile } from 'node:child_process';
import { chownSync, closeSync, constants, existsSync, mkdirSync, openSync, renameSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { SYSTEM_PATH } from './tools.ts';

/** Pipes made by one call of mkfifo: Node.js has none of its own. */
const BATCH = 64;
const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** Makes named pipes ahead of their use. */
export class FifoPool {
  readonly #folder: string;
  readonly #uid: number | undefined;
  readonly #ready: string[] = [];
  #filling: Promise<void> | undefined;

  /** `folder`: on the file system of the boxes. */
  constructor(folder: string, uid: number | undefined) {
    this.#folder = folder;
    this.#uid = uid;
  }

  /** Put one at a path. */
  async place(path: string): Promise<void> {
    while (this.#ready.length === 0) await this.#fill();
    const fifo = this.#ready.at(-1) as string;
    if (this.#uid !== undefined) chownSync(fifo, this.#uid, this.#uid);
    renameSync(fifo, path);
    this.#ready.pop();
    if (this.#ready.length < BATCH / 2) void this.#fill().catch(() => {});
  }

  /** Wait for what is being made, so that nothing appears after the folder is deleted. */
  async close(): Promise<void> {
    await this.#filling?.catch(() => {});
  }

  #fill(): Promise<void> {
    this.#filling ??= this.#make().finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  async #make(): Promise<void> {
    mkdirSync(this.#folder, { recursive: true });
    const paths = Array.from({ length: BATCH }, () => join(this.#folder, newId('fifo')));
    const made = await promisify(execFile)('mkfifo', ['-m', '600', ...paths], {
      env: { PATH: SYSTEM_PATH },
    }).catch((error: ExecFileException) => error);
    // Where there is no room for all of them, there are the first ones.
    const there = made instanceof Error ? paths.filter((path) => existsSync(path)) : paths;
    this.#ready.push(...there);
    if (there.length > 0 || !(made instanceof Error)) return;
    const [why = ''] = `${made.stderr ?? made.message}`.split('\n');
    throw new PolarError('SANDBOX_FAILED', `no pipe for a sandbox's output could be made: ${why}`);
  }
}

export interface OutputPipe {
  /** For the child; closed here with `childHasIt`. */
  readonly writeFd: number;
  /** Call after the spawn: from then on its end is the end of the last writer. */
  childHasIt(): Socket;
  /** Instead, where there is no child. */
  close(): void;
}

/** Both ends of a named pipe. */
export function openFifo(path: string): OutputPipe {
  using opened = new DisposableStack();
  const readFd = opened.adopt(openSync(path, O_RDONLY | O_NONBLOCK), closeSync);
  const writeFd = openSync(path, O_WRONLY);
  opened.move();
  return {
    writeFd,
    childHasIt() {
      closeSync(writeFd);
      return new Socket({ fd: readFd, readable: true, writable: false });
    },
    close() {
      closeSync(writeFd);
      closeSync(readFd);
    },
  };
}
