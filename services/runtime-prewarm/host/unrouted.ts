// Counts what a sandbox sent to addresses that it has no route to, by the kernel's counters of its network namespace.
import { closeSync, openSync, readSync } from 'node:fs';

/** Of IPv4 and IPv6. */
const FILES = ['snmp', 'snmp6'] as const;
const BYTES_MAX = 16 * 1024;

export class Unrouted implements Disposable {
  readonly #fds: readonly number[];
  readonly #before: number;

  /** Open files hold the namespace, so that its counters can be read when nothing runs in it any more. */
  constructor(pid: number) {
    this.#fds = FILES.flatMap((name) => open(`/proc/${pid}/net/${name}`));
    this.#before = this.#total();
  }

  /** Since the start. */
  get count(): number {
    return this.#total() - this.#before;
  }

  [Symbol.dispose](): void {
    for (const fd of this.#fds) closeSync(fd);
  }

  #total(): number {
    return this.#fds.reduce((sum, fd) => sum + outNoRoutes(textOf(fd)), 0);
  }
}

/** `snmp` has a line of names above one of values, `snmp6` a name and a value in each line. */
function outNoRoutes(text: string): number {
  const six = /^Ip6OutNoRoutes\s+(\d+)$/m.exec(text)?.[1];
  if (six !== undefined) return Number(six);
  const [names = [], values = []] = text
    .split('\n')
    .filter((line) => line.startsWith('Ip: '))
    .map((line) => line.split(' '));
  return Number(values[names.indexOf('OutNoRoutes')] ?? 0);
}

/** A kernel without IPv6 has one of them. */
function open(path: string): number[] {
  try {
    return [openSync(path, 'r')];
  } catch {
    return [];
  }
}

function textOf(fd: number): string {
  const buffer = Buffer.alloc(BYTES_MAX);
  return buffer.toString('latin1', 0, readSync(fd, buffer, 0, BYTES_MAX, 0));
}
