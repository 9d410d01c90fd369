// Where a scheduler listens, so exactly that two processes cannot do so at once: one that listens where the holder of the
// lease did is its successor, and need not wait until the lease is dead.
import { readFileSync, readlinkSync } from 'node:fs';

/** Machine, network namespace and address; empty where the system does not tell. */
export function placeOf(host: string, port: number): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/net')} ${host}:${port}`;
  } catch {
    return '';
  }
}
