// Configuration of the llm-proxy: the topology file and the environment, nothing else.
import { readFileSync } from 'node:fs';
import type { CommonConfig, Environment } from '../common/config/environment.ts';
import { nodeOf, readCommonConfig } from '../common/config/environment.ts';
import { faulty } from '../common/config/faults.ts';
import type { NodeTopology } from '../common/config/topology.ts';
import type { FieldFault } from '../common/errors.ts';
import { proxySocketOf } from '../common/proxy-socket.ts';
import type { Allowed } from './dialects/faults.ts';
import type { ExpertShape } from './domain/routed-experts.ts';
import { ApiKey } from './engines/api-key.ts';
import type { PoolSpec } from './engines/spec.ts';

export interface LlmProxyConfig extends CommonConfig {
  readonly node: NodeTopology;
  /** The policy's engines, then those of frozen model pools. */
  readonly pools: readonly PoolSpec[];
  /** Of what is asked. */
  readonly allowed: Allowed;
  /** Where it takes what comes out of sandboxes. */
  readonly proxySocket: string;
}

/** Throws INVALID_CONFIG with every fault. */
export function readConfig(env: Environment): LlmProxyConfig {
  const common = readCommonConfig(env);
  const node = nodeOf(common.topology, env);
  const proxySocket = proxySocketOf(common.topology.data_dir, node.id);
  const allowed = { imageUrls: node.image_urls };
  return { ...common, node, pools: poolsOf(node, env), allowed, proxySocket };
}

type Engines = NodeTopology['inference'] | NodeTopology['model_pool'][number];

/** Throws INVALID_CONFIG with every key that cannot be read. */
export function poolsOf(node: NodeTopology, env: Environment): PoolSpec[] {
  const faults: FieldFault[] = [];
  const specOf = (
    at: Engines,
    path: string,
  ): Omit<PoolSpec, 'alias' | 'model' | 'scheduler' | 'sessionsMax' | 'experts'> => ({
    kind: at.engine,
    urls: at.servers.length > 0 ? at.servers : [at.base_url],
    key: keyOf(at, path, env, faults),
    callsMax: at.max_concurrency,
    madeStreams: at.stream === 'made',
    queueMs: at.queue_timeout_seconds * 1_000,
  });
  const { inference } = node;
  const policy: PoolSpec = {
    ...specOf(inference, 'inference'),
    experts: expertsOf(inference),
    alias: '',
    model: node.model_served,
    scheduler: inference.scheduler,
    sessionsMax: null,
  };
  const frozen = node.model_pool.map((pool, i): PoolSpec => {
    const { alias, model, max_active_episodes: sessionsMax } = pool;
    return { ...specOf(pool, `model_pool[${i}]`), alias, model, scheduler: 'none', sessionsMax };
  });
  if (faults.length > 0) throw faulty('INVALID_CONFIG', `the engines of node ${node.id}`, faults);
  return [policy, ...frozen];
}

function expertsOf({ routed_experts: shape }: NodeTopology['inference']): ExpertShape | undefined {
  return shape && { layers: shape.layers, topK: shape.top_k, experts: shape.experts };
}

function keyOf(at: Engines, path: string, env: Environment, faults: FieldFault[]): ApiKey | undefined {
  const { api_key_env: name, api_key_file: file } = at;
  if (name === undefined && file === undefined) return undefined;
  const fault = (field: string, description: string): undefined => {
    faults.push({ field: `${path}.${field}`, description });
  };
  if (name !== undefined && file !== undefined)
    return fault('api_key_file', 'is not for use with api_key_env');
  if (name !== undefined) {
    const key = env[name]?.trim();
    return key ? new ApiKey(key) : fault('api_key_env', `${name} is not set for the llm-proxy`);
  }
  try {
    const key = readFileSync(file as string, 'utf8').trim();
    return key === '' ? fault('api_key_file', 'is empty') : new ApiKey(key);
  } catch {
    return fault('api_key_file', `cannot be read: ${file}`);
  }
}
