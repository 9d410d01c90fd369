// The logs of a local mesh: one file a process, which children write themselves, so that they can go on to the end.
import { copyFileSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { setInterval } from 'node:timers';

/** A log above this is moved to `.1`, which is replaced. */
const LOG_BYTES_MAX = 32 * 1024 * 1024;
const CHECK_MS = 5_000;
/** Of a message that a process ended with. */
const MESSAGE_CHARS_MAX = 4_000;
const LINES_MAX = 5;

/** Keeps files under LOG_BYTES_MAX. Their writers append, so that a file can be emptied under them. */
export class LogFiles implements Disposable {
  readonly #files = new Set<string>();
  readonly #timer = setInterval(() => this.check(), CHECK_MS).unref();

  add(file: string): void {
    this.#files.add(file);
    moveAside(file);
  }

  check(): void {
    this.#files.forEach(moveAside);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** What cannot be copied, as where the disk is full, stays as it is until the next look. */
function moveAside(file: string): void {
  if (sizeOf(file) <= LOG_BYTES_MAX) return;
  const aside = `${file}.1`;
  try {
    copyFileSync(file, aside);
    truncateSync(file);
  } catch {
    rmSync(aside, { force: true, recursive: true });
  }
}

/** Bytes of a file; 0 where there is none. */
export const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** What a service said last for a person (`polar: REASON: message`) behind a place in its log, else its last lines there. */
export function lastWords(file: string, fromByte: number): string {
  const text = sizeOf(file) === 0 ? '' : readFileSync(file).subarray(fromByte).toString('utf8');
  const at = text.lastIndexOf('\npolar: ');
  const start = at >= 0 ? at + 1 : text.startsWith('polar: ') ? 0 : -1;
  if (start >= 0) return text.slice(start + 'polar: '.length, start + MESSAGE_CHARS_MAX).trim();
  return text.trim().split('\n').slice(-LINES_MAX).join('\n').slice(-MESSAGE_CHARS_MAX);
}
