// Configuration of the llm-proxy: the topology file and the environment, nothing else.
import type { CommonConfig, Environment } from '../common/config/environment.ts';
import { nodeOf, readCommonConfig } from '../common/config/environment.ts';
import type { NodeTopology } from '../common/config/topology.ts';

export interface LlmProxyConfig extends CommonConfig {
  readonly node: NodeTopology;
}

/** Throws INVALID_CONFIG with every fault. */
export function readConfig(env: Environment): LlmProxyConfig {
  const common = readCommonConfig(env);
  return { ...common, node: nodeOf(common.topology, env) };
}
