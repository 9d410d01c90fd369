// What each connection out of a sandbox begins with on the LLM proxy's Unix socket: the session that it comes from, which
// the sandbox itself cannot choose.
import type { Socket } from 'node:net';

const LINE_END = 0x0a;
/** The line's bytes at most. */
const GREETING_BYTES_MAX = 256;
const GREETING: unique symbol = Symbol('greeting');

type Greeted = Socket & { [GREETING]?: string };

export const greetingLine = (session: string): string => `${session}\n`;

/** The session of a request's connection; undefined where it came by a port. Also through the form that HTTP/2 gives sockets. */
export const greetingOf = (request: { readonly socket: Socket }): string | undefined =>
  (request.socket as Greeted)[GREETING];

/** Reads the line, keeps it with the socket, and puts back what follows it. What is none ends the connection. */
export function readGreeting(socket: Socket, limitMs: number, next: () => void): void {
  const chunks: Buffer[] = [];
  const drop = (): void => void socket.destroy();
  const timer = setTimeout(drop, limitMs);
  const onReadable = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    chunks.push(chunk);
    const seen = Buffer.concat(chunks);
    const end = seen.indexOf(LINE_END);
    if (end < 0 && seen.length <= GREETING_BYTES_MAX) return;
    clearTimeout(timer);
    socket.off('readable', onReadable).off('error', drop).off('end', drop).off('close', stop);
    if (end < 0) {
      drop();
      return;
    }
    (socket as Greeted)[GREETING] = seen.toString('utf8', 0, end);
    if (end + 1 < seen.length) socket.unshift(seen.subarray(end + 1));
    next();
  };
  const stop = (): void => clearTimeout(timer);
  socket.on('readable', onReadable).on('error', drop).on('end', drop).once('close', stop);
}
