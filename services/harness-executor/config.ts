// Configuration of the harness executor: the topology file and the environment, nothing else.
import { join } from 'node:path';
import type { CommonConfig, Environment } from '../common/config/environment.ts';
import { nodeOf, readCommonConfig } from '../common/config/environment.ts';
import { publicUrl, schemeOf } from '../common/config/public-url.ts';
import type { NodeTopology } from '../common/config/topology.ts';
import { nodeFolder } from '../common/node-folder.ts';

export interface HarnessExecutorConfig extends CommonConfig {
  readonly node: NodeTopology;
  /** The node's LLM proxy as reached from this process. */
  readonly proxyUrl: string;
  /** Output of harnesses. */
  readonly logsDir: string;
  /** Files that are kept of sandboxes. */
  readonly artifactsDir: string;
  /** Folder whose bin/node runs harnesses from npm. */
  readonly nodeDir: string;
}

/** Throws INVALID_CONFIG with every fault. */
export function readConfig(env: Environment): HarnessExecutorConfig {
  const common = readCommonConfig(env);
  const node = nodeOf(common.topology, env);
  const { host, port } = node;
  return {
    ...common,
    node,
    proxyUrl: publicUrl({ host, port }, schemeOf(common.topology)),
    logsDir: join(common.topology.data_dir, 'nodes', node.id, 'harness-logs'),
    artifactsDir: join(common.topology.data_dir, 'nodes', node.id, 'harness-artifacts'),
    nodeDir: nodeFolder(),
  };
}
