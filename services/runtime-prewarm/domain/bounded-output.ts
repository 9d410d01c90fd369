// Output up to a limit for each stream; the rest is counted.
import type { OutputSink, OutputStream } from './command.ts';

export class BoundedOutput {
  droppedBytes = 0;
  readonly #sink: OutputSink;
  readonly #left: Record<OutputStream, number>;

  constructor(sink: OutputSink, bytesMax: number) {
    this.#sink = sink;
    this.#left = { stdout: bytesMax, stderr: bytesMax };
  }

  take(stream: OutputStream, bytes: Uint8Array): void {
    const kept = bytes.subarray(0, this.#left[stream]);
    this.#left[stream] -= kept.byteLength;
    this.droppedBytes += bytes.byteLength - kept.byteLength;
    if (kept.byteLength > 0) this.#sink(stream, kept);
  }
}
