// The two output streams of a command.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { settledWithin } from '../../common/clock.ts';
import { EXEC_OUTPUT_BYTES_MAX, SANDBOX_END_MS } from '../../common/limits.ts';
import type { OutputSink, OutputStream } from '../domain/command.ts';
import { type FifoPool, openFifo } from './fifos.ts';

const STREAMS: readonly OutputStream[] = ['stdout', 'stderr'];
const COMPLAINT_BYTES = 2_048;

/** Put the pipes of a sandbox into its folder, where an agent cannot replace them. */
export async function placeOutputs(pool: FifoPool, folder: string): Promise<void> {
  for (const name of STREAMS) await pool.place(join(folder, name));
}

/** Each stream up to EXEC_OUTPUT_BYTES_MAX; the rest is counted. */
export class Output {
  droppedBytes = 0;
  /** The first bytes of standard error: what a launcher says that fails. */
  complaint = '';
  readonly #pipes: readonly ReturnType<typeof openFifo>[];
  #sockets: readonly Socket[] = [];

  /** `folder` has the pipes. */
  constructor(folder: string) {
    this.#pipes = STREAMS.map((name) => openFifo(join(folder, name)));
  }

  /** Descriptors for the child. */
  get fds(): number[] {
    return this.#pipes.map(({ writeFd }) => writeFd);
  }

  /** Call once, after the spawn. */
  read(sink: OutputSink): void {
    this.#sockets = this.#pipes.map((pipe) => pipe.childHasIt());
    for (const [i, socket] of this.#sockets.entries()) this.#readOne(socket, STREAMS[i] ?? 'stdout', sink);
  }

  /** All is read; a pipe that something outside holds open is not waited for longer than SANDBOX_END_MS. */
  async closed(): Promise<void> {
    const open = this.#sockets.filter((socket) => !socket.closed);
    await settledWithin(Promise.all(open.map((socket) => once(socket, 'close'))), SANDBOX_END_MS);
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
    if (this.#sockets.length === 0) for (const pipe of this.#pipes) pipe.close();
  }

  #readOne(socket: Socket, name: OutputStream, sink: OutputSink): void {
    let left = EXEC_OUTPUT_BYTES_MAX;
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      const kept = chunk.subarray(0, left);
      left -= kept.byteLength;
      this.droppedBytes += chunk.byteLength - kept.byteLength;
      if (name === 'stderr' && this.complaint.length < COMPLAINT_BYTES) {
        this.complaint += kept.subarray(0, COMPLAINT_BYTES).toString('latin1');
      }
      if (kept.byteLength > 0) sink(name, kept);
    });
  }
}
