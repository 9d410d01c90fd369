// What the topology says of queues and engines, as the domain takes it.
import type { Topology } from '../../common/config/topology.ts';
import type { EngineRule } from '../domain/engines.ts';
import type { QueueRule } from '../domain/shares.ts';

export const queueRules = ({ rollout }: Topology): QueueRule[] =>
  rollout.queues.map(({ name, weight, max_running }) => ({ name, weight, maxRunning: max_running ?? 0 }));

export const engineRules = ({ gateway }: Topology): EngineRule[] =>
  gateway.nodes.map(({ id, inference: { servers, base_url, max_sessions, min_sessions } }) => ({
    nodeId: id,
    servers: servers.length > 0 ? servers : [base_url],
    maxSessions: max_sessions ?? undefined,
    minSessions: min_sessions ?? undefined,
  }));
