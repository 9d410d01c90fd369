// The control group hierarchies of the host: v1, v2, and both side by side.
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

export type Controller = 'memory' | 'pids' | 'cpu' | 'freezer';
const CONTROLLERS: readonly Controller[] = ['memory', 'pids', 'cpu', 'freezer'];
const LIMITING = ['memory', 'pids', 'cpu'] as const;

export interface Hierarchies {
  /** Mount point of the v2 tree. */
  readonly v2: string | undefined;
  /** Mount point of each controller, in whichever tree has it. */
  readonly points: ReadonlyMap<Controller, string>;
  /** All mount points in use. */
  readonly roots: readonly string[];
}

/** Where control groups are mounted: the v2 tree, and the v1 tree of each controller that has one. */
export function findMounts(): { v2: string | undefined; v1: ReadonlyMap<string, string> } {
  const v1 = new Map<string, string>();
  let v2: string | undefined;
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n')) {
    const [left = '', right = ''] = line.split(' - ');
    const point = left.split(' ')[4] ?? '';
    const [type, , options = ''] = right.split(' ');
    if (type === 'cgroup2') v2 ??= point;
    if (type !== 'cgroup') continue;
    for (const name of options.split(',')) if (!v1.has(name)) v1.set(name, point);
  }
  return { v2, v1 };
}

/** What a manager's own groups lie in; `ignoreV2` is for hosts, and tests, without `cgroup.kill`. */
export function findHierarchies(ignoreV2 = false): Hierarchies {
  const mounted = findMounts();
  const v2 = ignoreV2 ? undefined : mounted.v2;
  const points = new Map<Controller, string>();
  for (const controller of CONTROLLERS) {
    const point = mounted.v1.get(controller);
    if (point !== undefined) points.set(controller, point);
  }
  if (v2 !== undefined) {
    const offered = readIfThere(join(v2, 'cgroup.controllers')).split(/\s+/);
    for (const controller of LIMITING) if (offered.includes(controller)) points.set(controller, v2);
    // `cgroup.kill` is there since Linux 5.14 and does what the freezer is for.
    if (existsSync(join(v2, 'cgroup.subtree_control'))) points.delete('freezer');
  }
  return { v2, points, roots: [...new Set([...(v2 === undefined ? [] : [v2]), ...points.values()])] };
}

/** The base group in every hierarchy, whether it is there or not. */
export const basesOf = ({ roots }: Hierarchies, base: string): string[] =>
  roots.map((root) => join(root, base));

/** Makes the base group in every hierarchy. False where groups cannot be made: then nothing of it is left. */
export function makeBases({ v2, points, roots }: Hierarchies, base: string): boolean {
  const made: string[] = [];
  try {
    if (roots.length === 0) return false;
    for (const root of roots) {
      // Another mount may lie over what the kernel lists: below a folder that cannot be made Node.js looks for one for ever.
      accessSync(join(root, 'cgroup.procs'));
      mkdirSync(join(root, base), { recursive: true });
      made.push(join(root, base));
      accessSync(join(root, base, 'cgroup.procs'), constants.W_OK);
    }
  } catch {
    for (const folder of made) rmdirQuietly(folder);
    return false;
  }
  if (v2 !== undefined) {
    const wanted = LIMITING.filter((one) => points.get(one) === v2).map((one) => `+${one}`);
    // EBUSY where the parent holds processes itself: then there are groups, but not these limits.
    for (const folder of [v2, join(v2, base)]) {
      for (const one of wanted) writeQuietly(join(folder, 'cgroup.subtree_control'), one);
    }
  }
  return true;
}

/** Controllers that can limit a group below the base. */
export function enforcedBelow({ v2, points }: Hierarchies, base: string): (typeof LIMITING)[number][] {
  const handed = v2 === undefined ? [] : readIfThere(join(v2, base, 'cgroup.subtree_control')).split(/\s+/);
  return LIMITING.filter((one) => {
    const point = points.get(one);
    return point !== undefined && (point !== v2 || handed.includes(one));
  });
}

export function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** False where the kernel refuses. */
export function writeQuietly(file: string, value: string | number): boolean {
  try {
    writeFileSync(file, String(value));
    return true;
  } catch {
    return false;
  }
}

function rmdirQuietly(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Another process of the same base uses it.
  }
}
