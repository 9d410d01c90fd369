// A container engine for the bench, and what it uses. Its daemons, shims, monitors and runtimes come and go, but stay in the
// control group that it was put into; containers have groups of their own, all below one.
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { sleep } from '../../../services/common/clock.ts';
import { findMounts } from '../../../services/runtime-prewarm/containment/hierarchies.ts';
import { PROGRAMS_IMAGE } from '../../support/container-engine.ts';
import { type EngineKind, nodeWith, UNDER_LOAD } from '../../support/engines.ts';
import { treeOf } from '../proxy/processes.ts';
import { say } from '../scheduler/machine.ts';
import { type Meter, ownMs } from './meter.ts';

export interface BenchEngine extends AsyncDisposable {
  readonly image: string;
  /** What a node's topology says of it. */
  readonly node: ReturnType<typeof nodeWith>;
  readonly meter: Meter;
}

/** Groups of all containers, and of what watches them. */
const PLACES: Readonly<Record<EngineKind['backend'], { readonly all: string; readonly watchers?: string }>> =
  {
    docker: { all: 'docker' },
    podman: { all: 'libpod_parent', watchers: 'libpod_parent/conmon' },
  };

const GONE_MS = 10_000;

export async function startContainerEngine(backend: string): Promise<BenchEngine> {
  const kind = UNDER_LOAD.find((one) => one.backend === backend);
  if (kind === undefined) throw new Error(`there is no ${backend} here`);
  await using opened = new AsyncDisposableStack();
  const group = join(groupsOf().root, `polar-bench-${backend}-${process.pid}`);
  mkdirSync(group);
  opened.defer(() => removeGroup(group));
  const engine = opened.use(await kind.start());
  // What is started meanwhile is below one that is moved, or is moved itself.
  for (const pid of treeOf(engine.pid)) writeFileSync(join(group, 'cgroup.procs'), String(pid));
  const { all, watchers } = PLACES[kind.backend];
  const stack = opened.move();
  return {
    image: PROGRAMS_IMAGE,
    node: nodeWith(kind, engine),
    meter(pids) {
      const watching = watchers === undefined ? 0 : groupMs(watchers);
      return { own: ownMs(pids), engine: groupMs(group) + watching, sandboxes: groupMs(all) - watching };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** What the engine's end has killed may take a moment to be gone. No figure is lost for a group that stays. */
async function removeGroup(group: string): Promise<void> {
  const until = performance.now() + GONE_MS;
  for (;;) {
    try {
      rmdirSync(group);
      return;
    } catch (error) {
      if (performance.now() > until) {
        say(`${group} is left: ${(error as Error).message}`);
        return;
      }
    }
    await sleep(50);
  }
}

function groupsOf(): { readonly root: string; readonly msOf: (folder: string) => number } {
  const { v2 = '', v1 } = findMounts();
  const counted = v1.get('cpuacct');
  if (counted !== undefined) {
    return { root: counted, msOf: (folder) => Number(textOf(folder, 'cpuacct.usage')) / 1e6 };
  }
  const usage = (folder: string): string | undefined =>
    /usage_usec (\d+)/.exec(textOf(folder, 'cpu.stat'))?.[1];
  return { root: v2, msOf: (folder) => Number(usage(folder) ?? 0) / 1e3 };
}

/** CPU of all that was ever in it; `folder`: absolute, or below the root. 0 before its first. See `eachMs` of a wrong one. */
function groupMs(folder: string): number {
  const { root, msOf } = groupsOf();
  return msOf(folder.startsWith('/') ? folder : join(root, folder));
}

function textOf(folder: string, file: string): string {
  try {
    return readFileSync(join(folder, file), 'utf8');
  } catch {
    return '';
  }
}
