// Output up to a limit for each stream, its first half and its last; what lies between is counted.
import type { OutputSink, OutputStream } from './command.ts';

const STREAMS: readonly OutputStream[] = ['stdout', 'stderr'];

export class BoundedOutput {
  readonly #sink: OutputSink;
  readonly #left: Record<OutputStream, number>;
  readonly #tails: Record<OutputStream, Tail>;

  constructor(sink: OutputSink, bytesMax: number) {
    this.#sink = sink;
    const head = Math.ceil(bytesMax / 2);
    this.#left = { stdout: head, stderr: head };
    this.#tails = { stdout: new Tail(bytesMax - head), stderr: new Tail(bytesMax - head) };
  }

  get droppedBytes(): number {
    return this.#tails.stdout.droppedBytes + this.#tails.stderr.droppedBytes;
  }

  get droppedStderrBytes(): number {
    return this.#tails.stderr.droppedBytes;
  }

  /** The first half is handed on at once. */
  take(stream: OutputStream, bytes: Uint8Array): void {
    const kept = bytes.subarray(0, this.#left[stream]);
    this.#left[stream] -= kept.byteLength;
    if (kept.byteLength > 0) this.#sink(stream, kept);
    if (kept.byteLength < bytes.byteLength) this.#tails[stream].add(bytes.subarray(kept.byteLength));
  }

  /** Hand on the last half of each stream, where there is one; the caller tells `droppedBytes`. */
  end(): void {
    for (const stream of STREAMS) this.#handOn(stream);
  }

  /** The same where nobody is told of `droppedBytes`: only what has no gap before it. Nothing behind `end`. */
  endUntold(): void {
    for (const stream of STREAMS) if (this.#tails[stream].droppedBytes === 0) this.#handOn(stream);
  }

  #handOn(stream: OutputStream): void {
    for (const piece of this.#tails[stream].take()) this.#sink(stream, piece);
  }
}

/** The last `size` bytes of what is added. */
class Tail {
  readonly #size: number;
  /** A ring; made when something is added. */
  #ring: Uint8Array | undefined;
  #added = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get droppedBytes(): number {
    return Math.max(0, this.#added - this.#size);
  }

  add(bytes: Uint8Array): void {
    this.#ring ??= new Uint8Array(this.#size);
    const last = bytes.subarray(Math.max(0, bytes.byteLength - this.#size));
    const at = (this.#added + bytes.byteLength - last.byteLength) % this.#size;
    const fitting = last.subarray(0, this.#size - at);
    this.#ring.set(fitting, at);
    this.#ring.set(last.subarray(fitting.byteLength), 0);
    this.#added += bytes.byteLength;
  }

  /** In their order, none of them empty; once. */
  take(): Uint8Array[] {
    const ring = this.#ring;
    if (ring === undefined) return [];
    this.#ring = undefined;
    const begin = this.#added > this.#size ? this.#added % this.#size : 0;
    const end = Math.min(this.#added, this.#size);
    return [ring.subarray(begin, end), ring.subarray(0, begin)].filter((one) => one.length > 0);
  }
}
