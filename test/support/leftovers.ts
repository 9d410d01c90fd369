// What the sandboxes of a node have on this machine beside its data.
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256 } from '../../services/common/ids.ts';
import { eventually } from './eventually.ts';
import { processesWith } from './runtime-prewarm.ts';

/** `folder`: of the node's data, none of whose services runs any more. `marks`: in command lines of its sandboxes. */
export function leftoversOfNode(folder: string, marks: readonly string[]): string[] {
  const instance = instanceOf(folder);
  const boxes = join(folder, 'boxes');
  return [
    ...processes([...marks, `guardian.sh ${folder}`, instance]),
    ...[`/run/${instance}`, boxes].filter((path) => existsSync(path)),
    ...globSync(`/sys/fs/cgroup/{,*/}${instance}`),
    ...mounts(folder, instance),
    ...disks(folder, instance),
  ];
}

/** The same of a node whose services run and which has no session. */
function leftoversOfSessions(folder: string, marks: readonly string[]): string[] {
  const boxes = readdirSync(join(folder, 'boxes')).filter((name) => !name.startsWith('.'));
  const groups = globSync(`/sys/fs/cgroup/{,*/}${instanceOf(folder)}/*/`);
  return [...processes(marks), ...boxes, ...groups, ...mounts(folder), ...disks(folder, instanceOf(folder))];
}

/** Resolves when a node that runs has nothing of its sessions any more; throws with what is left. */
export async function leavesNothing(folder: string, marks: readonly string[]): Promise<void> {
  const left = (): string[] => leftoversOfSessions(folder, marks);
  await eventually(
    () => `nothing left:\n${left().join('\n')}`,
    () => left().length === 0,
  );
}

const instanceOf = (folder: string): string => `polar-${sha256(folder).slice(0, 12)}`;

const processes = (marks: readonly string[]): string[] =>
  marks.flatMap((mark) => processesWith(mark).map((pid) => `process ${pid} (${mark})`));

function mounts(...marks: readonly string[]): string[] {
  const own = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return own.filter((line) => marks.some((mark) => line.includes(mark)));
}

/** Loop devices of sandboxes with a cap on their storage. */
const disks = (...marks: readonly string[]): string[] =>
  globSync('/sys/block/loop*/loop/backing_file')
    .map((path) => readFileSync(path, 'utf8').trim())
    .filter((file) => marks.some((mark) => file.includes(mark)));
