// CPU of managers, and apart from it that of their sandboxes: what else runs on the machine does not count.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findMounts } from '../../../services/runtime-prewarm/containment/hierarchies.ts';
import { instanceOf } from '../../../services/runtime-prewarm/host/host.ts';
import { cpuMsOf } from '../proxy/processes.ts';

/** In ms. */
export interface Cpu {
  /** Of the processes that manage: the services and nats-server, or the loop of the floor. */
  readonly own: number;
  /** Of an engine of containers. */
  readonly engine: number;
  readonly sandboxes: number;
}

/** CPU used so far by these processes and by all sandboxes of the node with that data. */
export type Meter = (pids: readonly number[], nodeFolder: string) => Cpu;

export const groupsMeter: Meter = (pids, nodeFolder) => ({
  own: ownMs(pids),
  engine: 0,
  sandboxes: sandboxMs(nodeFolder),
});

export const usedMs = (pids: readonly number[], nodeFolder: string): number =>
  totalMs(groupsMeter(pids, nodeFolder));

export const totalMs = ({ own, engine, sandboxes }: Cpu): number => own + engine + sandboxes;

/** What was used from one look to another, a session. Throws where no sandbox is counted: the groups are wrong then. */
export function eachMs(from: Cpu, to: Cpu, sessions: number): Cpu {
  const sandboxes = to.sandboxes - from.sandboxes;
  if (!(sandboxes > 0))
    throw new Error('the sandboxes used no CPU: they are not in the groups that are read');
  return {
    own: (to.own - from.own) / sessions,
    engine: (to.engine - from.engine) / sessions,
    sandboxes: sandboxes / sessions,
  };
}

export const ownMs = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);

/** The kernel counts for the group above all sandboxes, also of those that are gone. */
function sandboxMs(nodeFolder: string): number {
  const { v2, v1 } = findMounts();
  const [root, file] = v2 === undefined ? [v1.get('cpuacct') ?? '', 'cpuacct.usage'] : [v2, 'cpu.stat'];
  const text = readFileSync(join(root, instanceOf(nodeFolder), file), 'utf8');
  return v2 === undefined ? Number(text) / 1e6 : Number(/usage_usec (\d+)/.exec(text)?.[1] ?? 0) / 1e3;
}
