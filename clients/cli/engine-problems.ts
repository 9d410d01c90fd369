// What keeps the engines of a local mesh from being used: harnesses ask again for minutes before a session says so.
import { ProxyService } from '../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import type { Topology } from '../../services/common/config/topology.ts';
import { credentialsFor } from './credentials.ts';
import { addressOf } from './services.ts';

/** The proxy asks an engine for two seconds. */
const ANSWER_MS = 5_000;

/** Of all nodes, each once; a proxy that cannot be asked has none to tell. */
export async function engineProblems(topology: Topology, signal: AbortSignal): Promise<string[]> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  const told = topology.gateway.nodes.map(({ id, inference }) =>
    problemsOf(addressOf(topology, 'llm-proxy', id), inference.base_url, either).catch(() => []),
  );
  return [...new Set((await Promise.all(told)).flat())];
}

async function problemsOf(url: string, router: string, signal: AbortSignal): Promise<string[]> {
  const client = createPlainClient(ProxyService, url, credentialsFor(url));
  const { engines } = await client.listEngines({}, { signal });
  const problems = engines.map(({ problem }) => problem).filter((problem) => problem !== '');
  const hasPolicy = engines.some(({ pool }) => pool === '');
  return hasPolicy ? problems : [...problems, `the router at ${router} names no engine`];
}
