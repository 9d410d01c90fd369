// The topology of a local mesh: the file's or a built-in one, completed and written where the services read it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { stringify } from 'yaml';
import { faulty, parsePlain, readText } from '../../../services/common/config/faults.ts';
import { loginKeys, natsAddress, natsOf } from '../../../services/common/config/nats.ts';
import { parseTopology, type Topology } from '../../../services/common/config/topology.ts';
import { environment, inherited } from '../config.ts';
import { runTopologyIn } from '../topology-file.ts';
import { freePort, freePorts, listenersOf, takenPorts } from './listeners.ts';

const HOST = '127.0.0.1';
/** Of the first embedded engine; the next ones follow. */
const ENGINE_PORT = 8100;
/** Where nats-server tells of itself; the next free one. */
const MONITOR_PORT = 8222;

export interface LocalOptions {
  readonly config: string | undefined;
  readonly dataDir: string | undefined;
  readonly engineUrl: string | undefined;
  readonly engine: string | undefined;
}

/** A scripted engine that stands in for one that the user did not name. */
export interface Embedded {
  readonly dialect: string;
  readonly port: number;
}

export interface LocalTopology {
  readonly topology: Topology;
  /** What the services read. */
  readonly file: string;
  /** NATS as services reach it, and the same without the login that it may hold. */
  readonly natsUrl: string;
  readonly natsShown: string;
  /** Whether the mesh starts its own. */
  readonly ownNats: boolean;
  /** Of that one's monitoring. */
  readonly monitorPort: number;
  readonly embedded: readonly Embedded[];
  /** Ports that were taken, and what was chosen instead. */
  readonly moved: readonly string[];
}

type Tree = Record<string, unknown>;

/** What was asked for, before anything is looked at on this machine. */
export interface Wanted {
  readonly tree: Tree;
  readonly topology: Topology;
  readonly named: string;
  readonly builtIn: boolean;
}

/** Throws INVALID_CONFIG for a faulty file. */
export function wantedTopology(options: LocalOptions): Wanted {
  const named = options.config ?? 'the built-in topology';
  const text = options.config === undefined ? '{}' : readText(options.config, 'INVALID_CONFIG');
  parseTopology(text, named);
  const tree = (parsePlain(text) ?? {}) as Tree;
  const builtIn = options.config === undefined;
  if (builtIn) {
    tree['rollout'] = { host: HOST };
    tree['reconstructor'] = { host: HOST };
  }
  tree['gateway'] ??= { nodes: [builtIn ? { id: 'local', host: HOST } : {}] };
  if (options.dataDir !== undefined) tree['data_dir'] = options.dataDir;
  for (const node of nodesOf(tree)) {
    node['cache_dir'] ??= environment.cacheDir;
    if (options.engine !== undefined) setEngine(node, { engine: options.engine });
    // In place of whichever servers the file names.
    if (options.engineUrl !== undefined) setEngine(node, { base_url: options.engineUrl, servers: [] });
  }
  return { tree, topology: parseTopology(stringify(tree), named), named, builtIn };
}

/**
 * Choose ports and stand-in engines, and write the result. Of the built-in topology a taken port is replaced; in a file
 * it is a fault: throws INVALID_CONFIG with all of them.
 */
export async function localTopology({ tree, topology, named, builtIn }: Wanted): Promise<LocalTopology> {
  const existing = environment.natsUrl ?? topology.nats.url ?? undefined;
  const { tls } = topology.nats;
  if (existing === undefined && tls !== undefined && tls.cert_file === undefined) {
    const description = 'is needed: `polar up` starts a NATS server, which serves with it';
    throw faulty('INVALID_CONFIG', named, [{ field: 'nats.tls.cert_file', description }]);
  }
  const [login] = loginKeys(topology.nats);
  if (existing === undefined && login !== undefined) {
    const description = 'is for a server of your own: set nats.url, or POLAR_NATS_URL';
    throw faulty('INVALID_CONFIG', named, [{ field: `nats.${login}`, description }]);
  }
  if (existing !== undefined) hideLogin(tree, topology, natsOf(topology.nats, inherited).shown);
  const listeners = listenersOf(topology, existing === undefined);
  const moved: string[] = [];
  if (builtIn) {
    const ports = await freePorts(listeners);
    for (const { field, what, port } of listeners) {
      const chosen = ports.get(field) ?? port;
      setPort(tree, field, chosen);
      if (chosen !== port) moved.push(`port ${port} is taken: ${what} listens on ${chosen}`);
    }
  } else {
    const faults = await takenPorts(listeners);
    if (faults.length > 0) throw faulty('INVALID_CONFIG', named, faults);
  }
  const embedded = await embedEngines(tree);
  const written = write(tree, runTopologyIn(topology.data_dir), named);
  const natsUrl = existing ?? `${tls === undefined ? 'nats' : 'tls'}://${HOST}:${written.topology.nats.port}`;
  const monitorPort = await freePort(MONITOR_PORT, HOST);
  const { shown: natsShown } = natsAddress(natsUrl);
  return { ...written, natsUrl, natsShown, ownNats: existing === undefined, monitorPort, embedded, moved };
}

/** Services have it from their environment; what is written for all to read does without. */
function hideLogin(tree: Tree, { nats }: Topology, shown: string): void {
  if (nats.url !== null) tree['nats'] = { ...(tree['nats'] as Tree), url: shown };
}

/** One scripted engine a dialect, for all nodes of it that have none of their own. */
async function embedEngines(tree: Tree): Promise<Embedded[]> {
  const embedded: Embedded[] = [];
  for (const node of nodesOf(tree)) {
    const { base_url: given, servers, engine } = (node['inference'] ?? {}) as Tree;
    if (given !== undefined || (Array.isArray(servers) && servers.length > 0)) continue;
    // Any of them speaks OpenAI's API.
    const dialect = engine === 'openai' ? 'vllm' : String(engine ?? 'sglang');
    const known = embedded.find((one) => one.dialect === dialect);
    const own = known ?? { dialect, port: await freePort(ENGINE_PORT, HOST) };
    if (known === undefined) embedded.push(own);
    setEngine(node, { base_url: `http://${HOST}:${own.port}` });
  }
  return embedded;
}

/** Write the tree as the services are to read it. */
function write(tree: Tree, file: string, named: string): { topology: Topology; file: string } {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, stringify(tree));
  return { file, topology: parseTopology(stringify(tree), named) };
}

function nodesOf(tree: Tree): Tree[] {
  return ((tree['gateway'] as Tree | undefined)?.['nodes'] ?? []) as Tree[];
}

function setEngine(node: Tree, more: Tree): void {
  node['inference'] = { ...(node['inference'] as Tree | undefined), ...more };
}

/** `field` is a path as in listenersOf. */
function setPort(tree: Tree, field: string, port: number): void {
  const [, index, ofNode] = /^gateway\.nodes\[(\d+)\]\.(\w+)$/.exec(field) ?? [];
  const node = nodesOf(tree)[Number(index)];
  if (node !== undefined && ofNode !== undefined) node[ofNode] = port;
  else {
    const [part = '', key = ''] = field.split('.');
    tree[part] = { ...(tree[part] as Tree | undefined), [key]: port };
  }
}
