// Output on its way to the caller. The backends' own cap, EXEC_OUTPUT_BYTES_MAX a stream, bounds what waits here.
import type { OutputSink, OutputStream } from './command.ts';

export interface OutputPiece {
  readonly stream: OutputStream;
  readonly bytes: Uint8Array;
}

export interface OutputQueue {
  readonly push: OutputSink;
  readonly close: () => void;
  readonly items: AsyncIterable<OutputPiece>;
}

/** Pieces that wait one behind the other are joined up to this: of a caller that is slow they would be millions. */
const JOINED_BYTES_MAX = 16 * 1024;

/** The newest piece that waits, with room for more. */
interface Block {
  readonly stream: OutputStream;
  readonly room: Uint8Array;
  length: number;
}

/** One reader. What was pushed before `close` is read; a reader that leaves early stops nothing. */
export function outputQueue(): OutputQueue {
  let waiting: OutputPiece[] = [];
  let block: Block | undefined;
  let closed = false;
  let wake = Promise.withResolvers<void>();
  const signal = (): void => {
    wake.resolve();
    wake = Promise.withResolvers<void>();
  };
  const push: OutputSink = (stream, bytes) => {
    const last = waiting.at(-1);
    const length = (last?.bytes.length ?? 0) + bytes.length;
    if (last?.stream !== stream || length > JOINED_BYTES_MAX) {
      waiting.push({ stream, bytes });
      block = undefined;
    } else {
      block ??= blockOf(last);
      block.room.set(bytes, block.length);
      block.length = length;
      waiting[waiting.length - 1] = { stream, bytes: block.room.subarray(0, length) };
    }
    signal();
  };
  async function* items(): AsyncGenerator<OutputPiece> {
    for (;;) {
      const { promise } = wake;
      const ready = waiting;
      waiting = [];
      block = undefined;
      yield* ready;
      if (waiting.length > 0) continue;
      if (closed) return;
      await promise;
    }
  }
  return {
    push,
    close() {
      closed = true;
      signal();
    },
    items: items(),
  };
}

function blockOf({ stream, bytes }: OutputPiece): Block {
  const room = new Uint8Array(JOINED_BYTES_MAX);
  room.set(bytes);
  return { stream, room, length: bytes.length };
}
