// Descriptors that this process was started with.
import { closeSync, readdirSync, readFileSync } from 'node:fs';

const O_CLOEXEC = 0o2000000;
const FIRST = 3;

/** Those that every child would inherit; Node.js opens none of that kind itself. */
export function inheritedDescriptors(): number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => fd >= FIRST && isInherited(fd));
}

/** Close them: a sandbox holds nothing of whoever started the manager. */
export function closeInheritedDescriptors(): void {
  for (const fd of inheritedDescriptors()) closeSync(fd);
}

function isInherited(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    return false;
  }
}
