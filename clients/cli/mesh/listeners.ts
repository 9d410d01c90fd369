// The ports of a local mesh.
import type { Topology } from '../../../services/common/config/topology.ts';
import type { FieldFault } from '../../../services/common/errors.ts';
import { claimPort, portFault } from './ports.ts';

/** Ports tried, from the wanted one on. */
const PORTS_TRIED_MAX = 200;

export interface Listener {
  /** Its port's path in the topology file. */
  readonly field: string;
  readonly what: string;
  readonly host: string;
  readonly port: number;
}

/** Everything that listens; `ownNats` where the mesh starts a nats-server. */
export function listenersOf(
  { rollout, reconstructor, gateway, nats, tls }: Topology,
  ownNats: boolean,
): Listener[] {
  const local = '127.0.0.1';
  const nodes = gateway.nodes.flatMap((node, i): Listener[] => {
    const at = `gateway.nodes[${i}]`;
    const of = (service: string): string =>
      gateway.nodes.length === 1 ? service : `${service} of ${node.id}`;
    return [
      { field: `${at}.port`, what: of('llm-proxy'), host: node.host, port: node.port },
      {
        field: `${at}.runtime_prewarm_port`,
        what: of('runtime-prewarm'),
        host: local,
        port: node.runtime_prewarm_port,
      },
      {
        field: `${at}.harness_executor_port`,
        what: of('harness-executor'),
        host: local,
        port: node.harness_executor_port,
      },
      { field: `${at}.evaluator_port`, what: of('evaluator'), host: local, port: node.evaluator_port },
      ...(tls === undefined
        ? []
        : [
            {
              field: `${at}.harness_port`,
              what: of('llm-proxy, to harnesses'),
              host: local,
              port: node.harness_port,
            },
          ]),
    ];
  });
  return [
    { field: 'rollout.port', what: 'scheduler', ...rollout },
    { field: 'reconstructor.port', what: 'reconstructor', ...reconstructor },
    ...nodes,
    ...(ownNats ? [{ field: 'nats.port', what: 'nats-server', host: local, port: nats.port }] : []),
  ];
}

/** A fault for each port that is taken, by another process or by another listener of the same mesh. */
export async function takenPorts(listeners: readonly Listener[]): Promise<FieldFault[]> {
  const seen = new Map<number, string>();
  const faults: FieldFault[] = [];
  for (const { field, what, host, port } of listeners) {
    const other = seen.get(port);
    seen.set(port, field);
    if (other !== undefined) {
      faults.push({ field, description: `${port} is the port of ${other}, too: give ${what} another one` });
      continue;
    }
    const fault = await portFault(port, host);
    if (fault !== undefined) {
      faults.push({ field, description: `${host}, port ${port}, ${fault}: give ${what} another one` });
    }
  }
  return faults;
}

/** For each listener its port or the next one that is free. */
export async function freePorts(listeners: readonly Listener[]): Promise<ReadonlyMap<string, number>> {
  const chosen = new Map<string, number>();
  for (const { field, host, port } of listeners) chosen.set(field, await freePort(port, host));
  return chosen;
}

/** The wanted port or the next one that is free, claimed; the wanted one where none is. */
export async function freePort(wanted: number, host: string): Promise<number> {
  for (let port = wanted; port < wanted + PORTS_TRIED_MAX; port++) {
    if (await claimPort(port, host)) return port;
  }
  return wanted;
}
