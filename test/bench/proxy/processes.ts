// What processes cost, from /proc.
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

const TICK_MS = 10;

/** The process and all below it. */
export function treeOf(pid: number): number[] {
  const children = threadsOf(pid).flatMap((thread) =>
    text(`/proc/${pid}/task/${thread}/children`).trim().split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(treeOf)];
}

/** CPU that a tree of processes has used, in ms; the scheduler counts it in nanoseconds for each thread. */
export function cpuMsOf(pid: number): number {
  const threads = treeOf(pid).flatMap((one) => threadsOf(one).map((thread) => `/proc/${one}/task/${thread}`));
  return threads.reduce((sum, path) => sum + Number(text(`${path}/schedstat`).split(' ')[0] ?? 0), 0) / 1e6;
}

/** Of it that in the kernel, in ms; counted in ticks of 10, so that it says something of many calls only. */
export function systemMsOf(pid: number): number {
  const ticks = treeOf(pid).map((one) =>
    Number(
      text(`/proc/${one}/stat`)
        .replace(/^.*\) /, '')
        .split(' ')[12],
    ),
  );
  return ticks.reduce((sum, each) => sum + each, 0) * TICK_MS;
}

/** Resident memory of a tree of processes, in MiB. */
export const residentMiBOf = (pid: number): number => mibOf(pid, /^VmRSS:\s+(\d+)/m);

/** Of it what is in no file: pages of programs are shared, and the kernel takes them back as it likes. */
export const ownMiBOf = (pid: number): number => mibOf(pid, /^RssAnon:\s+(\d+)/m);

function mibOf(pid: number, line: RegExp): number {
  const kib = treeOf(pid).map((one) => Number(line.exec(text(`/proc/${one}/status`))?.[1] ?? 0));
  return kib.reduce((sum, each) => sum + each, 0) / 1024;
}

/** CPU that everything on the machine has used since it started, in ms. */
export function busyMs(): number {
  return cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);
}

const threadsOf = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
};

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
