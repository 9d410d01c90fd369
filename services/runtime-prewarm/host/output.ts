// The two output streams of a command.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { settledWithin } from '../../common/clock.ts';
import { EXEC_OUTPUT_BYTES_MAX, SANDBOX_END_MS } from '../../common/limits.ts';
import { BoundedOutput } from '../domain/bounded-output.ts';
import type { OutputSink, OutputStream } from '../domain/command.ts';
import { type FifoPool, openFifo } from './fifos.ts';

const STREAMS: readonly OutputStream[] = ['stdout', 'stderr'];
const COMPLAINT_BYTES = 2_048;

/** Put the pipes of a sandbox into its folder, where an agent cannot replace them. */
export async function placeOutputs(pool: FifoPool, folder: string): Promise<void> {
  for (const name of STREAMS) await pool.place(join(folder, name));
}

/** Each stream up to EXEC_OUTPUT_BYTES_MAX, its first and its last half; the rest is counted. */
export class Output {
  /** The first bytes of standard error: what a launcher says that fails. */
  complaint = '';
  readonly #pipes: readonly ReturnType<typeof openFifo>[];
  #sockets: readonly Socket[] = [];
  #bounded: BoundedOutput | undefined;

  /** `folder` has the pipes. */
  constructor(folder: string) {
    using opened = new DisposableStack();
    this.#pipes = STREAMS.map((name) => opened.adopt(openFifo(join(folder, name)), (pipe) => pipe.close()));
    opened.move();
  }

  /** Descriptors for the child. */
  get fds(): number[] {
    return this.#pipes.map(({ writeFd }) => writeFd);
  }

  get droppedBytes(): number {
    return this.#bounded?.droppedBytes ?? 0;
  }

  get droppedStderrBytes(): number {
    return this.#bounded?.droppedStderrBytes ?? 0;
  }

  /** Call once, after the spawn. */
  read(sink: OutputSink): void {
    const bounded = new BoundedOutput(sink, EXEC_OUTPUT_BYTES_MAX);
    this.#bounded = bounded;
    this.#sockets = this.#pipes.map((pipe) => pipe.childHasIt());
    for (const [i, socket] of this.#sockets.entries()) this.#readOne(socket, STREAMS[i] ?? 'stdout', bounded);
  }

  /** All is read; a pipe that something outside holds open is not waited for longer than SANDBOX_END_MS. */
  async closed(): Promise<void> {
    const open = this.#sockets.filter((socket) => !socket.closed);
    await settledWithin(Promise.all(open.map((socket) => once(socket, 'close'))), SANDBOX_END_MS);
  }

  /** Reads no more, and hands on what is held for the end: of a command that has a result, which tells `droppedBytes`. */
  end(): void {
    this.#stop();
    this.#bounded?.end();
  }

  /** Without `end` only what nothing was dropped before is handed on. */
  [Symbol.dispose](): void {
    this.#stop();
    this.#bounded?.endUntold();
    if (this.#sockets.length === 0) for (const pipe of this.#pipes) pipe.close();
  }

  #stop(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #readOne(socket: Socket, name: OutputStream, bounded: BoundedOutput): void {
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      if (name === 'stderr' && this.complaint.length < COMPLAINT_BYTES) {
        this.complaint += chunk.subarray(0, COMPLAINT_BYTES).toString('latin1');
      }
      bounded.take(name, chunk);
    });
  }
}
