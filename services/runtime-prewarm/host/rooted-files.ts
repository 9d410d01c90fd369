// Files below a folder that an agent writes to. Every step is taken from an open folder, never by a path from the top, so a
// link that is planted in between leads nowhere: links are resolved here, inside the root.
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lchownSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { PATH_LINKS_MAX, SANDBOX_FILE_BYTES_MAX } from '../../common/limits.ts';
import { type FileWrite, partsOf, unsafe } from '../domain/paths.ts';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** Folders in one another on the way to a file; each is held open, and nothing else is done meanwhile. Above: UNSAFE_PATH. */
const DEPTH_MAX = 512;

export interface RootedOptions {
  /** Host folder that is `/`. */
  readonly root: string;
  /** Owner of what is made; undefined: this process. */
  readonly uid: number | undefined;
  /** Top folders that are not the root's own. */
  readonly covered: readonly string[];
}

/** What an agent has made of a path, or a caller asked for, is no fault of the sandbox. */
const UNSAFE: Readonly<Record<string, string>> = {
  EACCES: 'is closed to this process',
  // What a command has a lease on, as of fcntl.
  EAGAIN: 'is held by a command',
  EBUSY: 'is shown to the sandbox and not its own',
  EISDIR: 'is a folder',
  ENAMETOOLONG: 'has a name that is too long',
  ENXIO: 'is not a regular file',
  EROFS: 'is shown to the sandbox and not its own',
};

/** Make a folder with its parents. */
export function makeFolder(options: RootedOptions, path: string): void {
  using walk = new Walk(options, path);
  for (const part of partsOf(path)) walk.enter(part, true);
}

/** Write files, replacing what is there; other work gets its turn between two of them. Throws the signal's reason. */
export async function putFiles(
  options: RootedOptions,
  files: readonly FileWrite[],
  signal: AbortSignal,
): Promise<void> {
  for (const file of files) {
    signal.throwIfAborted();
    putFile(options, file);
    await nextTurn();
  }
}

function putFile(options: RootedOptions, { path, content, mode }: FileWrite): void {
  using walk = new Walk(options, path);
  const name = walk.enterParent(partsOf(path), true);
  const temporary = walk.below(newId('.polar'));
  try {
    writeNew(options, temporary, content, mode);
    renameSync(temporary, walk.below(name));
  } catch (error) {
    rmSync(temporary, { force: true });
    throw told(path, error);
  }
}

function writeNew({ uid }: RootedOptions, file: string, content: Uint8Array, mode: number): void {
  const fd = openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeFileSync(fd, content);
    fchmodSync(fd, mode);
    if (uid !== undefined) fchownSync(fd, uid, uid);
  } finally {
    closeSync(fd);
  }
}

function told(path: string, error: unknown): unknown {
  const why = UNSAFE[(error as NodeJS.ErrnoException).code ?? ''];
  return why === undefined ? error : unsafe(path, why);
}

/** The bytes of one regular file. Throws NOT_FOUND, FILE_TOO_LARGE, UNSAFE_PATH. */
export function getFile(options: RootedOptions, path: string): Uint8Array {
  using walk = new Walk(options, path);
  const fd = walk.openFile(partsOf(path));
  try {
    const { size } = fstatSync(fd);
    if (!fstatSync(fd).isFile()) throw unsafe(path, 'is not a regular file');
    if (size > SANDBOX_FILE_BYTES_MAX) {
      throw new PolarError(
        'FILE_TOO_LARGE',
        `${path} has ${size} bytes, above the limit of ${SANDBOX_FILE_BYTES_MAX}`,
      );
    }
    const bytes = Buffer.alloc(size);
    let length = 0;
    for (let n = -1; n !== 0 && length < size; length += n)
      n = readSync(fd, bytes, length, size - length, length);
    return bytes.subarray(0, length);
  } finally {
    closeSync(fd);
  }
}

/** A way from the root downward, held by open folders. */
class Walk {
  readonly #options: RootedOptions;
  readonly #path: string;
  readonly #folders: number[];
  #links = 0;

  constructor(options: RootedOptions, path: string) {
    this.#options = options;
    this.#path = path;
    this.#folders = [openSync(options.root, O_RDONLY | O_DIRECTORY)];
  }

  [Symbol.dispose](): void {
    for (const fd of this.#folders) closeSync(fd);
  }

  /** The host's name for an entry of the present folder, independent of what lies above it. */
  below(name: string): string {
    return `/proc/self/fd/${this.#folders.at(-1)}/${name}`;
  }

  /** Go down all but the last part, which is returned. */
  enterParent(parts: readonly string[], create: boolean): string {
    for (const part of parts.slice(0, -1)) this.enter(part, create);
    const last = parts.at(-1);
    if (last === undefined) throw unsafe(this.#path, 'must name a file');
    this.#refuseCovered(last);
    return last;
  }

  enter(part: string, create: boolean): void {
    if (part === '' || part === '.') return;
    if (this.#folders.length > DEPTH_MAX) throw unsafe(this.#path, `lies in more than ${DEPTH_MAX} folders`);
    if (part === '..') this.#up();
    else this.#down(part, create);
  }

  openFile(parts: readonly string[]): number {
    const name = this.enterParent(parts, false);
    try {
      return openSync(this.below(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ELOOP') throw this.#told(error);
      const target = this.#linkParts(name);
      const last = target.pop() ?? '';
      if (last === '' || last === '..') throw unsafe(this.#path, 'is a folder');
      for (const step of target) this.enter(step, false);
      return this.openFile([last]);
    }
  }

  #down(part: string, create: boolean): void {
    this.#refuseCovered(part);
    try {
      this.#folders.push(openSync(this.below(part), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' && create) this.#make(part);
      else if (code === 'ENOTDIR' || code === 'ELOOP') {
        for (const step of this.#linkParts(part)) this.enter(step, create);
      } else throw this.#told(error);
    }
  }

  #make(part: string): void {
    try {
      mkdirSync(this.below(part), 0o755);
    } catch (error) {
      throw this.#told(error);
    }
    if (this.#options.uid !== undefined) lchownSync(this.below(part), this.#options.uid, this.#options.uid);
    this.#folders.push(openSync(this.below(part), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  }

  #up(): void {
    if (this.#folders.length > 1) closeSync(this.#folders.pop() as number);
  }

  /** Where a link leads, as steps from the present folder; an absolute one starts at the sandbox's root. */
  #linkParts(part: string): string[] {
    if (++this.#links > PATH_LINKS_MAX) throw unsafe(this.#path, 'goes through too many links');
    let target: string;
    try {
      target = readlinkSync(this.below(part));
    } catch {
      throw unsafe(this.#path, 'goes through something that is not a folder');
    }
    if (target.startsWith('/')) while (this.#folders.length > 1) this.#up();
    return target.split('/').filter((one) => one !== '' && one !== '.');
  }

  #refuseCovered(part: string): void {
    if (this.#folders.length === 1 && this.#options.covered.includes(part)) {
      throw unsafe(this.#path, `lies in /${part}, which is not the sandbox's own`);
    }
  }

  #told(error: unknown): unknown {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return new PolarError('NOT_FOUND', `there is no ${this.#path} in the sandbox`);
    return told(this.#path, error);
  }
}
