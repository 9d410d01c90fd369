// The topology that a command is told of.
import { parseTopology, readTopology, type Topology } from '../../services/common/config/topology.ts';
import { type Arguments, textFlag } from './arguments.ts';
import { environment } from './config.ts';

/** The topology that a command is told of, or the built-in one. */
export function topologyOf(args: Arguments): Topology {
  const file = textFlag(args, 'config') ?? environment.topology;
  return file === undefined ? parseTopology('{}', 'the built-in topology') : readTopology(file);
}
