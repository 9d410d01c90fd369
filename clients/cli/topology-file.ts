// The topology that a command is told of, and that of the mesh which it calls.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseTopology, readTopology, type Topology } from '../../services/common/config/topology.ts';
import { type Arguments, textFlag } from './arguments.ts';
import { environment } from './config.ts';
import { isLocked } from './mesh/lock.ts';

/** The topology that a command is told of, or the built-in one. */
export function topologyOf(args: Arguments): Topology {
  const file = fileOf(args);
  return file === undefined ? builtIn() : readTopology(file);
}

/**
 * Who is told of no mesh means the one that `polar up` runs in this folder: its ports are others where the usual ones were
 * taken, perhaps by another mesh.
 */
export function meshTopologyOf(args: Arguments): Topology {
  const { data_dir: dataDir } = builtIn();
  const file = runTopologyIn(dataDir);
  const isHere = !isTold(args) && isLocked(dataDir) && existsSync(file);
  return isHere ? readTopology(file) : topologyOf(args);
}

/** What `polar up` writes for its services. */
export const runTopologyIn = (dataDir: string): string => join(dataDir, 'run', 'topology.yaml');

const fileOf = (args: Arguments): string | undefined => textFlag(args, 'config') ?? environment.topology;

const isTold = (args: Arguments): boolean =>
  [
    fileOf(args),
    ...['rollout-url', 'trajectory-url', 'node-url'].map((flag) => textFlag(args, flag)),
    environment.rolloutUrl,
    environment.trajectoryUrl,
  ].some((told) => told !== undefined);

const builtIn = (): Topology => parseTopology('{}', 'the built-in topology');
