// A stand-in for vLLM: answers from bytes made ahead, whole or as a stream at the pace that it is told.
import { createServer, type Socket } from 'node:net';
import process from 'node:process';
import { STAMP_DIGITS, smallReply, streamParts } from './conversations.ts';
import { MessageReader, nowUs } from './http1.ts';

/** Set by a message from the parent. */
export interface EnginePace {
  readonly chunks: number;
  readonly gapMs: number;
}

const SMALL_REPLIES = 64;
/** `stream` stands this near to an end of the body. */
const LOOK_BYTES = 16_384;
const NOTHING = Buffer.alloc(0);

const withHead = (body: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
    ),
    body,
  ]);
const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n';

const replies = Array.from({ length: SMALL_REPLIES }, (_, i) => withHead(smallReply(i)));
const models = withHead(
  Buffer.from('{"object":"list","data":[{"id":"served","object":"model","owned_by":"bench"}]}'),
);
let pace: EnginePace = { chunks: 200, gapMs: 20 };
let calls = 0;

const framed = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

function stream(socket: Socket): void {
  const { open, before, after, end } = streamParts(pace.chunks);
  const size = (Buffer.byteLength(before) + STAMP_DIGITS + Buffer.byteLength(after)).toString(16);
  const [head, foot] = [`${size}\r\n${before}`, `${after}\r\n`];
  const chunk = (): string => head + String(nowUs()).padStart(STAMP_DIGITS, '0') + foot;
  let sent = 0;
  socket.write(STREAM_HEAD + framed(open), 'latin1');
  const timer = setInterval(() => {
    if (socket.destroyed) return clearInterval(timer);
    socket.write(chunk(), 'latin1');
    if (++sent < pace.chunks) return;
    clearInterval(timer);
    socket.write(`${framed(end)}0\r\n\r\n`, 'latin1');
  }, pace.gapMs);
}

function answer(socket: Socket, head: string, first: Buffer, last: Buffer): void {
  if (head.startsWith('GET ')) {
    socket.write(models);
    return;
  }
  const streamed = /"stream": ?true/;
  if (streamed.test(first.toString('latin1')) || streamed.test(last.toString('latin1'))) {
    stream(socket);
    return;
  }
  socket.write(replies[calls++ % SMALL_REPLIES] as Buffer);
}

function serve(socket: Socket): void {
  const reader = new MessageReader();
  let first: Buffer = NOTHING;
  let last: Buffer = NOTHING;
  socket.setNoDelay(true).on('error', () => socket.destroy());
  socket.on('data', (bytes: Buffer) =>
    reader.push(
      bytes,
      (piece) => {
        if (first.length < LOOK_BYTES) first = first.length === 0 ? piece : Buffer.concat([first, piece]);
        last = piece.length >= LOOK_BYTES ? piece : Buffer.concat([last.subarray(-LOOK_BYTES), piece]);
      },
      () => {
        answer(socket, reader.head, first.subarray(0, LOOK_BYTES), last.subarray(-LOOK_BYTES));
        [first, last] = [NOTHING, NOTHING];
      },
    ),
  );
}

process.on('message', (message: EnginePace) => {
  pace = message;
  process.send?.('set');
});
process.on('disconnect', () => process.exit());
const server = createServer(serve).listen(0, '127.0.0.1', 1_024, () => {
  process.send?.((server.address() as { port: number }).port);
});
