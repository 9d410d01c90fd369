// Callers whose machines are gone without a word: switched off, or cut off. The kernel goes on sending to one what it has
// not acknowledged for a quarter of an hour, and Node.js has no TCP_USER_TIMEOUT; but how often the kernel has tried is in
// /proc. A caller that stands still is none of these: its kernel answers for it.
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { type Address, parseAddress } from './specs/addresses.ts';

/** Looks, one after another, at which a machine owes an answer that has been asked for again; then it is lost. */
export const SILENT_LOOKS_MAX = 5;
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];

/** Cuts the connections of lost callers, until disposed of. */
export function cutLost(sockets: ReadonlySet<Socket>, lookMs: number): Disposable {
  const looks = new WeakMap<Socket, number>();
  /** What had been written to it when all of that was acknowledged. */
  const settled = new WeakMap<Socket, number>();
  const look = async (): Promise<void> => {
    // For each table the kernel goes through as many places as the machine may have connections: some milliseconds.
    const owed = [...sockets].filter((socket) => settled.get(socket) !== socket.bytesWritten);
    if (owed.length === 0) return;
    const written = new Map(owed.map((socket) => [socket, socket.bytesWritten]));
    const tables = await Promise.all(TABLES.map(read));
    const [silent, waiting] = [new Set(tables.flatMap(silentIn)), new Set(tables.flatMap(waitingIn))];
    for (const [socket, sizeBytes] of written) {
      const connection = connectionOf(socket);
      if (!waiting.has(connection)) settled.set(socket, sizeBytes);
      const count = silent.has(connection) ? (looks.get(socket) ?? 0) + 1 : 0;
      looks.set(socket, count);
      if (count >= SILENT_LOOKS_MAX) socket.destroy();
    }
  };
  const timer = setInterval(() => void look(), lookMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Elsewhere than on Linux there is no such table, and a lost caller is the kernel's matter. */
const read = (table: string): Promise<string> => readFile(table, 'latin1').catch(() => '');

const connectionOf = ({ localPort, remoteAddress = '', remotePort }: Socket): string =>
  named(localPort, parseAddress(remoteAddress), remotePort);

const named = (localPort = 0, remote: Address | undefined, remotePort = 0): string =>
  `${localPort} ${remote?.version} ${remote?.value} ${remotePort}`;

/**
 * The connections of a table in which something was sent more than once and is not acknowledged yet, or the peer was asked
 * more than once whether it reads on: kernels pass over one such question where they come soon after each other.
 */
export const silentIn = (table: string): string[] =>
  connectionsIn(table, ([, , , , , , repeats = '', , questions]) => {
    return Number.parseInt(repeats, 16) > 0 || Number(questions) >= 2;
  });

/** The connections of a table in which something is not acknowledged yet. */
const waitingIn = (table: string): string[] =>
  connectionsIn(table, ([, , , , queues = '']) => Number.parseInt(queues, 16) > 0);

function connectionsIn(table: string, isMeant: (fields: readonly string[]) => boolean): string[] {
  const rows = table.split('\n').slice(1, -1);
  return rows.flatMap((row) => {
    const fields = row.trim().split(/\s+/);
    if (!isMeant(fields)) return [];
    const [, local = '', remote = ''] = fields;
    const [address = '', port] = remote.split(':');
    return named(portOf(local.split(':')[1]), addressOf(address), portOf(port));
  });
}

const portOf = (hex = ''): number => Number.parseInt(hex, 16);

/** The kernel prints words of four bytes as the machine has them: the last byte first. */
function addressOf(hex: string): Address | undefined {
  const groups = (hex.match(/.{8}/g) ?? []).flatMap((word) => {
    const [a = '', b = '', c = '', d = ''] = word.match(/../g) ?? [];
    return [d + c, b + a];
  });
  return parseAddress(groups.length === 2 ? dotted(groups.join('')) : groups.join(':'));
}

const dotted = (hex: string): string => (hex.match(/../g) ?? []).map((byte) => portOf(byte)).join('.');
