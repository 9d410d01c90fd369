// What harnesses wrote, one file an attempt, the newest kept. Nothing here is waited for by a session's result.
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type GetSessionLogsResponse,
  GetSessionLogsResponseSchema,
} from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import { makeFoldersOf } from '../../common/folders.ts';
import {
  HARNESS_LOG_EDGE_BYTES,
  HARNESS_LOGS_BYTES_MAX,
  HARNESS_LOGS_KEPT_MAX,
} from '../../common/limits.ts';
import { HeadTail } from '../domain/head-tail.ts';
import { toRemove } from '../domain/retention.ts';

export interface AttemptLog {
  readonly stdout: (bytes: Uint8Array) => void;
  readonly stderr: (bytes: Uint8Array) => void;
  /** Keep it; `exitCode` -1 where the command gave none, `leftOut` bytes the sandbox did not hand on. */
  close(exitCode: number, leftOut?: { readonly stdout: number; readonly stderr: number }): Promise<void>;
}

const SUFFIX = '.log';

/** `<session>.<attempt>.log` in one folder; what is still being written is read from memory. */
export class LogStore {
  readonly #folder: string;
  readonly #sizes = new Map<string, number>();
  readonly #live = new Map<string, () => GetSessionLogsResponse>();
  #sizeBytes = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(folder: string): Promise<LogStore> {
    const store = new LogStore(folder);
    makeFoldersOf('data_dir', folder);
    const found: { name: string; size: number; mtimeMs: number }[] = [];
    for (const name of await readdir(folder)) {
      if (!name.endsWith(SUFFIX)) await rm(join(folder, name), { force: true, recursive: true });
      else found.push({ name, ...(await stat(join(folder, name))) });
    }
    found.sort((a, b) => a.mtimeMs - b.mtimeMs);
    for (const { name, size } of found) store.#add(name, size);
    return store;
  }

  begin(sessionId: string, attempt: number): AttemptLog {
    const name = nameOf(sessionId, attempt);
    const [stdout, stderr] = [new HeadTail(HARNESS_LOG_EDGE_BYTES), new HeadTail(HARNESS_LOG_EDGE_BYTES)];
    const snapshot = (exitCode: number, running: boolean): GetSessionLogsResponse =>
      create(GetSessionLogsResponseSchema, {
        stdout: stdout.bytes(),
        stderr: stderr.bytes(),
        stdoutSize: BigInt(stdout.sizeBytes),
        stderrSize: BigInt(stderr.sizeBytes),
        exitCode,
        attempt,
        running,
      });
    this.#live.set(name, () => snapshot(0, true));
    return {
      stdout: (bytes) => stdout.push(bytes),
      stderr: (bytes) => stderr.push(bytes),
      close: async (exitCode, leftOut = { stdout: 0, stderr: 0 }) => {
        stdout.leftOut(leftOut.stdout);
        stderr.leftOut(leftOut.stderr);
        try {
          await this.#write(name, toBinary(GetSessionLogsResponseSchema, snapshot(exitCode, false)));
        } finally {
          this.#live.delete(name);
        }
      },
    };
  }

  /** `attempt` 0 is the last one. Throws NOT_FOUND. */
  async read(sessionId: string, attempt: number): Promise<GetSessionLogsResponse> {
    const wanted = attempt === 0 ? this.#lastAttempt(sessionId) : attempt;
    const name = nameOf(sessionId, wanted);
    const live = this.#live.get(name);
    if (live !== undefined) return live();
    if (this.#sizes.has(name)) {
      const bytes = await readFile(join(this.#folder, name)).catch(() => undefined);
      if (bytes !== undefined) return fromBinary(GetSessionLogsResponseSchema, bytes);
    }
    const which = wanted === 0 ? 'any attempt' : `attempt ${wanted}`;
    throw new PolarError('NOT_FOUND', `this node has no output of session ${sessionId}, of ${which}`);
  }

  #lastAttempt(sessionId: string): number {
    const prefix = `${sessionId}.`;
    const names = [...this.#sizes.keys(), ...this.#live.keys()].filter((name) => name.startsWith(prefix));
    return Math.max(0, ...names.map((name) => Number(name.slice(prefix.length, -SUFFIX.length))));
  }

  async #write(name: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.#folder, name);
    // At once: it is small and goes to the kernel's memory, and threads would take several times the CPU.
    try {
      writeFileSync(`${path}.part`, bytes);
      renameSync(`${path}.part`, path);
    } catch (error) {
      rmSync(`${path}.part`, { force: true });
      throw error;
    }
    this.#add(name, bytes.byteLength);
    const total = { count: this.#sizes.size, sizeBytes: this.#sizeBytes };
    const max = { count: HARNESS_LOGS_KEPT_MAX, sizeBytes: HARNESS_LOGS_BYTES_MAX };
    for (const old of toRemove(this.#sizes, total, max)) {
      this.#sizeBytes -= this.#sizes.get(old) ?? 0;
      this.#sizes.delete(old);
      await rm(join(this.#folder, old), { force: true });
    }
  }

  #add(name: string, sizeBytes: number): void {
    this.#sizeBytes += sizeBytes - (this.#sizes.get(name) ?? 0);
    this.#sizes.delete(name);
    this.#sizes.set(name, sizeBytes);
  }
}

const nameOf = (sessionId: string, attempt: number): string => `${sessionId}.${attempt}${SUFFIX}`;
