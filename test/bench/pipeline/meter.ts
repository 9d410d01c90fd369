// CPU of managers and of their sandboxes: what else runs on the machine does not count.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findMounts } from '../../../services/runtime-prewarm/containment/hierarchies.ts';
import { instanceOf } from '../../../services/runtime-prewarm/host/host.ts';
import { cpuMsOf } from '../proxy/processes.ts';

/** CPU used so far by these processes and by all sandboxes of the node with that data, in ms. */
export const usedMs = (pids: readonly number[], nodeFolder: string): number =>
  pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0) + sandboxMs(nodeFolder);

/** The kernel counts for the group above all sandboxes, also of those that are gone. */
function sandboxMs(nodeFolder: string): number {
  const { v2, v1 } = findMounts();
  const [root, file] = v2 === undefined ? [v1.get('cpuacct') ?? '', 'cpuacct.usage'] : [v2, 'cpu.stat'];
  const text = readFileSync(join(root, instanceOf(nodeFolder), file), 'utf8');
  return v2 === undefined ? Number(text) / 1e6 : Number(/usage_usec (\d+)/.exec(text)?.[1] ?? 0) / 1e3;
}
