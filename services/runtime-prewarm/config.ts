// Configuration of runtime-prewarm: the topology file and the environment, nothing else.
import { chmodSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { create } from '@bufbuild/protobuf';
import { type RuntimeSpec, RuntimeSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import {
  type CommonConfig,
  type Environment,
  nodeOf,
  readCommonConfig,
} from '../common/config/environment.ts';
import { faulty } from '../common/config/faults.ts';
import type { NodeTopology } from '../common/config/topology.ts';
import type { FieldFault } from '../common/errors.ts';
import { makeFoldersOf } from '../common/folders.ts';
import { nodeFolder } from '../common/node-folder.ts';
import { proxySocketOf } from '../common/proxy-socket.ts';
import { BACKENDS, type BackendName } from '../common/specs/catalogue.ts';
import { networkOf, type RuntimeFile, triesOf, unsupportedFields } from '../common/specs/runtime.ts';
import type { MountRoot } from './domain/mounts.ts';
import type { Rate } from './domain/token-bucket.ts';
import type { Watermarks } from './domain/watermarks.ts';

/** A folder with this can be gone through by all. */
const PASSABLE = 0o011;

export interface RuntimePrewarmConfig extends CommonConfig {
  readonly node: NodeTopology;
  /** Everything of this node's sandboxes lies here. */
  readonly dataDir: string;
  /** Where the node's LLM proxy takes what comes out of sandboxes. */
  readonly proxySocket: string;
  /** Host folders below which a command's mounts may lie. */
  readonly mountRoots: readonly MountRoot[];
  readonly defaultRuntime: RuntimeSpec | undefined;
  /** Search path for bwrap and python3. */
  readonly path: string;
}

/** Throws INVALID_CONFIG with every fault. */
export function readConfig(env: Environment): RuntimePrewarmConfig {
  const common = readCommonConfig(env);
  const node = nodeOf(common.topology, env);
  return {
    ...common,
    node,
    dataDir: join(common.topology.data_dir, 'nodes', node.id),
    proxySocket: proxySocketOf(common.topology.data_dir, node.id),
    mountRoots: mountRootsOf(node),
    defaultRuntime: node.default_runtime === null ? undefined : defaultRuntimeOf(node.default_runtime, node),
    path: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
  };
}

/** The rule: installed harnesses (cache), and the Node.js of harnesses (node). Nothing else of the host. */
function mountRootsOf(node: NodeTopology): MountRoot[] {
  openToSandboxes(node.cache_dir);
  return [
    { name: 'cache', path: realpathSync(node.cache_dir) },
    { name: 'node', path: nodeFolder() },
  ];
}

/** Their commands run under another user, who is led through this folder, whoever made it and with which umask. */
function openToSandboxes(folder: string): void {
  makeFoldersOf('cache_dir', folder);
  const { mode, uid } = statSync(folder);
  if (uid === process.getuid?.() && (mode & PASSABLE) !== PASSABLE) chmodSync(folder, mode | PASSABLE);
}

/** How fast each backend makes sandboxes, where the node limits it. */
export function ratesOf({
  creates_per_s: limits,
  creates_burst: burst,
}: NodeTopology): Map<BackendName, Rate> {
  const named = BACKENDS.map((name) => [name, limits[name]] as const);
  return new Map(
    named.flatMap(([name, perSecond]) => (perSecond === undefined ? [] : [[name, { perSecond, burst }]])),
  );
}

/** When images go for room on their disk. */
export const marksOf = (node: NodeTopology): Watermarks => ({
  highPercent: node.images_high_percent,
  lowPercent: node.images_low_percent,
  keepMs: node.images_keep_seconds * 1_000,
});

function defaultRuntimeOf(runtime: RuntimeFile, node: NodeTopology): RuntimeSpec {
  const faults: FieldFault[] = [...unsupportedFields(runtime)];
  const steps = [...runtime.prepare, ...(runtime.eval_prepare ?? [])];
  if (steps.some((step) => 'source' in step)) {
    faults.push({
      field: 'prepare',
      description: 'uploads belong to a task; a default runtime has exec steps only',
    });
  }
  if ((runtime.gpus ?? 0) > 0 && !node.gpus.shared) {
    faults.push({
      field: 'gpus',
      description: 'belongs to a task, which waits for them; or set gpus.shared',
    });
  }
  if (faults.length > 0) {
    const named = faults.map(({ field, description }) => ({
      field: `default_runtime.${field}`,
      description,
    }));
    throw faulty('INVALID_CONFIG', 'the topology', named);
  }
  return create(RuntimeSpecSchema, {
    backend: runtime.backend ?? '',
    image: runtime.image,
    prepare: stepsOf(runtime.prepare),
    ...(runtime.eval_prepare !== null && { evalPrepare: { steps: stepsOf(runtime.eval_prepare) } }),
    prepareEach: runtime.prepare_each,
    env: runtime.env,
    workdir: runtime.workdir ?? '',
    cpus: runtime.cpus ?? 0,
    memoryMb: runtime.memory_mb ?? 0,
    gpus: runtime.gpus ?? 0,
    storageMb: runtime.storage_mb ?? 0,
    ...networkOf(runtime),
  });
}

function stepsOf(steps: RuntimeFile['prepare']) {
  return steps.flatMap((step) =>
    'source' in step
      ? []
      : [
          {
            step: {
              case: 'exec' as const,
              value: {
                command: step.command,
                cwd: step.cwd ?? '',
                env: step.env,
                ...triesOf(step),
              },
            },
          },
        ],
  );
}
