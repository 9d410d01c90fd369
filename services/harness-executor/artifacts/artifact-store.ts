// Files that are kept of attempts: one folder each, the newest kept. `index.json` names them, they are called by number.
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { PolarError } from '../../common/errors.ts';
import { makeFoldersOf } from '../../common/folders.ts';
import { HARNESS_ARTIFACTS_BYTES_MAX, HARNESS_LOGS_KEPT_MAX } from '../../common/limits.ts';
import { toRemove } from '../domain/retention.ts';

export interface Artifact {
  /** Absolute in the sandbox. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly transcript: boolean;
}

export interface ArtifactIndex {
  readonly artifacts: readonly Artifact[];
  /** Why some were not kept. */
  readonly problems: readonly string[];
  /** By which the task names files; undefined where it names all of them from the root. */
  readonly workdir?: string | undefined;
}

const INDEX = 'index.json';
const TEMP_PREFIX = '.tmp-';

export class ArtifactStore {
  readonly #folder: string;
  readonly #sizes = new Map<string, number>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(folder: string): Promise<ArtifactStore> {
    const store = new ArtifactStore(folder);
    makeFoldersOf('data_dir', folder);
    const found: { name: string; size: number; mtimeMs: number }[] = [];
    for (const name of await readdir(folder)) {
      const index = name.startsWith(TEMP_PREFIX) ? undefined : await indexIn(join(folder, name));
      if (index === undefined) await rm(join(folder, name), { recursive: true, force: true });
      else found.push({ name, size: sizeOf(index), mtimeMs: (await stat(join(folder, name))).mtimeMs });
    }
    found.sort((a, b) => a.mtimeMs - b.mtimeMs);
    for (const { name, size } of found) store.#sizes.set(name, size);
    return store;
  }

  /** Begin to keep files of an attempt; they are there when `done` returns. */
  async begin(sessionId: string, attempt: number): Promise<Keeping> {
    const name = nameOf(sessionId, attempt);
    const temp = join(this.#folder, `${TEMP_PREFIX}${name}`);
    await rm(temp, { recursive: true, force: true });
    await mkdir(temp);
    return new Keeping(temp, async (index) => {
      await rm(join(this.#folder, name), { recursive: true, force: true });
      await rename(temp, join(this.#folder, name));
      this.#sizes.delete(name);
      this.#sizes.set(name, sizeOf(index));
      await this.#forgetOldest();
    });
  }

  /** `attempt` 0 is the last one. Throws NOT_FOUND. */
  async list(sessionId: string, attempt: number): Promise<ArtifactIndex & { attempt: number }> {
    const wanted = attempt === 0 ? this.#lastAttempt(sessionId) : attempt;
    const name = nameOf(sessionId, wanted);
    const index = this.#sizes.has(name) ? await indexIn(join(this.#folder, name)) : undefined;
    if (index === undefined) throw keptNone(sessionId, wanted);
    return { ...index, attempt: wanted };
  }

  /** By its path in the sandbox, or as its task named it. Throws NOT_FOUND. */
  async read(sessionId: string, attempt: number, path: string): Promise<Uint8Array> {
    const { artifacts, attempt: found, workdir = '/' } = await this.list(sessionId, attempt);
    const names = [path, posix.resolve(workdir, path)];
    const n = artifacts.findIndex((one) => names.includes(one.path));
    const file = join(this.#folder, nameOf(sessionId, found), String(n));
    const bytes = n < 0 ? undefined : await readFile(file).catch(() => undefined);
    if (bytes !== undefined) return bytes;
    throw new PolarError(
      'NOT_FOUND',
      `this node kept no file ${path} of session ${sessionId}, attempt ${found}`,
    );
  }

  #lastAttempt(sessionId: string): number {
    const prefix = `${sessionId}.`;
    const names = [...this.#sizes.keys()].filter((name) => name.startsWith(prefix));
    return Math.max(0, ...names.map((name) => Number(name.slice(prefix.length))));
  }

  async #forgetOldest(): Promise<void> {
    const sizeBytes = [...this.#sizes.values()].reduce((sum, size) => sum + size, 0);
    const max = { count: HARNESS_LOGS_KEPT_MAX, sizeBytes: HARNESS_ARTIFACTS_BYTES_MAX };
    for (const old of toRemove(this.#sizes, { count: this.#sizes.size, sizeBytes }, max)) {
      this.#sizes.delete(old);
      await rm(join(this.#folder, old), { recursive: true, force: true });
    }
  }
}

/** The files of one attempt, as they come. Disposed of, it leaves nothing of them that `done` has not kept. */
export class Keeping implements AsyncDisposable {
  readonly #folder: string;
  readonly #commit: (index: ArtifactIndex) => Promise<void>;
  readonly #artifacts: Artifact[] = [];
  sizeBytes = 0;

  constructor(folder: string, commit: (index: ArtifactIndex) => Promise<void>) {
    this.#folder = folder;
    this.#commit = commit;
  }

  get count(): number {
    return this.#artifacts.length;
  }

  async add(path: string, transcript: boolean, content: Uint8Array): Promise<void> {
    await writeFile(join(this.#folder, String(this.count)), content);
    this.#artifacts.push({ path, sizeBytes: content.byteLength, transcript });
    this.sizeBytes += content.byteLength;
  }

  async done(problems: readonly string[], workdir?: string): Promise<void> {
    const index: ArtifactIndex = { artifacts: this.#artifacts, problems, workdir };
    await writeFile(join(this.#folder, INDEX), JSON.stringify(index));
    await this.#commit(index);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

const nameOf = (sessionId: string, attempt: number): string => `${sessionId}.${attempt}`;

/** Undefined where there is none, or half of one. */
const indexIn = (folder: string): Promise<ArtifactIndex | undefined> =>
  readFile(join(folder, INDEX), 'utf8')
    .then((text) => JSON.parse(text) as ArtifactIndex)
    .catch(() => undefined);

const sizeOf = ({ artifacts }: ArtifactIndex): number =>
  artifacts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

function keptNone(sessionId: string, attempt: number): PolarError {
  const which = attempt === 0 ? 'any attempt' : `attempt ${attempt}`;
  return new PolarError('NOT_FOUND', `this node kept no files of session ${sessionId}, of ${which}`);
}
