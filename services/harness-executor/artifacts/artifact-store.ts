// Files that are kept of attempts: one folder each, the newest kept. `index.json` names them, they are called by number.
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PolarError } from '../../common/errors.ts';
import { makeFolders } from '../../common/folders.ts';
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
    makeFolders(folder);
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
    if (index === undefined) throw notFound(`session ${sessionId}, attempt ${attempt}`);
    return { ...index, attempt: wanted };
  }

  /** Throws NOT_FOUND. */
  async read(sessionId: string, attempt: number, path: string): Promise<Uint8Array> {
    const { artifacts, attempt: found } = await this.list(sessionId, attempt);
    const n = artifacts.findIndex((one) => one.path === path);
    const file = join(this.#folder, nameOf(sessionId, found), String(n));
    const bytes = n < 0 ? undefined : await readFile(file).catch(() => undefined);
    if (bytes === undefined) throw notFound(`${path} of session ${sessionId}, attempt ${found}`);
    return bytes;
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

  async done(problems: readonly string[]): Promise<void> {
    const index: ArtifactIndex = { artifacts: this.#artifacts, problems };
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

const notFound = (what: string): PolarError =>
  new PolarError('NOT_FOUND', `this node has no files of ${what}`);
