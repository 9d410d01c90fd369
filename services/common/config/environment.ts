// What every service reads from the environment; a service's config.ts hands `process.env` in and adds its own.
import { CertificateStore } from '../tls/certificates.ts';
import { faulty } from './faults.ts';
import { type NatsCredentials, natsOf } from './nats.ts';
import { type NodeTopology, parseTopology, readTopology, type Topology } from './topology.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface CommonConfig {
  readonly topology: Topology;
  readonly nats: NatsConfig;
  readonly logLevel: string;
  /** End when standard input ends. */
  readonly lifeline: boolean;
  /** With which this process calls others, without white space around it; undefined: with none. */
  readonly token: string | undefined;
  /** Of the mesh's ports, and of calls between its services. */
  readonly tls?: CertificateStore | undefined;
}

interface NatsConfig {
  /** Without the login that it may have had. */
  readonly url: string;
  readonly credentials?: NatsCredentials | undefined;
  readonly tls?: CertificateStore | undefined;
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** POLAR_TOPOLOGY, POLAR_NATS_URL, POLAR_LOG_LEVEL, POLAR_LIFELINE, POLAR_TOKEN; one that is empty is not set. */
export function readCommonConfig(env: Environment): CommonConfig {
  const file = env['POLAR_TOPOLOGY'] || undefined;
  const topology = file === undefined ? parseTopology('{}', 'the default topology') : readTopology(file);
  const logLevel = env['POLAR_LOG_LEVEL'] || 'info';
  if (!LOG_LEVELS.includes(logLevel)) {
    throw faulty('INVALID_CONFIG', 'the environment', [
      { field: 'POLAR_LOG_LEVEL', description: `must be one of ${LOG_LEVELS.join(', ')}` },
    ]);
  }
  const { shown: url, credentials } = natsOf(topology.nats, env);
  const { tls, natsTls } = openCertificates(topology);
  return {
    topology,
    nats: { url, credentials, tls: natsTls },
    tls,
    logLevel,
    lifeline: env['POLAR_LIFELINE'] === 'stdin',
    token: env['POLAR_TOKEN']?.trim() || undefined,
  };
}

/** Throws INVALID_CONFIG with every file that cannot be used. */
export function openCertificates({
  tls,
  nats,
}: Topology): Record<'tls' | 'natsTls', CertificateStore | undefined> {
  return {
    tls: tls && new CertificateStore(tls, (key) => `tls.${key}`),
    natsTls: nats.tls && new CertificateStore(nats.tls, (key) => `nats.tls.${key}`),
  };
}

/** The node that this process belongs to: POLAR_GATEWAY_NODE_ID, or the only one there is. */
export function nodeOf(topology: Topology, env: Environment): NodeTopology {
  const { nodes } = topology.gateway;
  const id = env['POLAR_GATEWAY_NODE_ID'] || undefined;
  const node = id === undefined && nodes.length === 1 ? nodes[0] : nodes.find((one) => one.id === id);
  if (node !== undefined) return node;
  throw faulty('INVALID_CONFIG', 'the environment', [
    {
      field: 'POLAR_GATEWAY_NODE_ID',
      description: `must be one of ${nodes.map((one) => one.id).join(', ')}${id === undefined ? '' : `, not ${id}`}`,
    },
  ]);
}
