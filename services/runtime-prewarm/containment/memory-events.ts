// What the kernel tells of the memory of a control group.
import { join } from 'node:path';
import { readIfThere } from './hierarchies.ts';

export interface MemoryEvents {
  /** Processes of the group that the kernel killed for want of memory, whoever had it. */
  readonly oomKills: number;
  /** How often the group reached its own limit; of v1 also where that was the file cache's doing alone. */
  readonly limitHits: number;
}

export const NO_MEMORY_EVENTS: MemoryEvents = { oomKills: 0, limitHits: 0 };

/** Newer kernels do not count hits of the limit with swap, which is as high as the other, and is looked at first. */
const CHARGED_AT_ONCE_BYTES_MAX = 1024 * 1024;

/** `folder`: of the group, where its memory is counted. */
export function memoryEvents(folder: string, v2: boolean): MemoryEvents {
  const read = (name: string): string => readIfThere(join(folder, name));
  const events = told(folder, v2);
  if (v2) return { oomKills: countOf(events, 'oom_kill'), limitHits: countOf(events, 'oom') };
  const number = (name: string): number => Number(read(name));
  const isNear =
    number('memory.max_usage_in_bytes') >= number('memory.limit_in_bytes') - CHARGED_AT_ONCE_BYTES_MAX;
  return { oomKills: countOf(events, 'oom_kill'), limitHits: number('memory.failcnt') + Number(isNear) };
}

/** Only that of them. */
export const oomKillsOf = (folder: string, v2: boolean): number => countOf(told(folder, v2), 'oom_kill');

const told = (folder: string, v2: boolean): string =>
  readIfThere(join(folder, v2 ? 'memory.events' : 'memory.oom_control'));

const countOf = (events: string, name: string): number =>
  Number(new RegExp(`^${name} (\\d+)`, 'm').exec(events)?.[1] ?? 0);

export const eventsSince = (now: MemoryEvents, before: MemoryEvents): MemoryEvents => ({
  oomKills: Math.max(0, now.oomKills - before.oomKills),
  limitHits: Math.max(0, now.limitHits - before.limitHits),
});
