// A whole mesh on this machine: nats-server, the embedded engine, six services.
import { join } from 'node:path';
import process from 'node:process';
import { sleep } from '../../../services/common/clock.ts';
import { openCertificates } from '../../../services/common/config/environment.ts';
import { faulty } from '../../../services/common/config/faults.ts';
import { PolarError } from '../../../services/common/errors.ts';
import { makeFolders } from '../../../services/common/folders.ts';
import type { CertificateStore } from '../../../services/common/tls/certificates.ts';
import { environment, inherited } from '../config.ts';
import { addressOf, mainOf, NODE_SERVICES, nodeFlagsOf, SERVICES, type ServiceName } from '../services.ts';
import { startChild } from './child.ts';
import { startEngine } from './engine.ts';
import { tellFullDisk, watchDisk } from './full-disk.ts';
import { lockDataDir } from './lock.ts';
import { awaitEarlier, createLifeline, type Lifeline, startNatsServer } from './nats-server.ts';
import { answersOk } from './ready.ts';
import { type Supervised, Supervisor } from './supervisor.ts';
import {
  type LocalOptions,
  type LocalTopology,
  localTopology,
  type Wanted,
  wantedTopology,
} from './topology.ts';

/** From the first process to the last answer that it is ready. */
const READY_MS = 30_000;
const READY_CHECK_MS = 50;

export interface MeshOptions extends LocalOptions {
  /** Of the embedded engine. */
  readonly scripts: readonly string[];
}

export interface LocalMesh {
  readonly local: LocalTopology;
  /** Where everything is, by name. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly logs: string;
  readonly supervisor: Supervisor;
  stop(): Promise<void>;
}

/** Bring a local mesh up; resolves when all is ready. */
export async function startLocalMesh(options: MeshOptions, signal: AbortSignal): Promise<LocalMesh> {
  const wanted = wantedTopology(options);
  const { tls } = openCertificates(wanted.topology);
  const { data_dir: dataDir } = wanted.topology;
  const logs = join(dataDir, 'logs');
  const unlock = await openDataDir(wanted, logs);
  const supervisor = new Supervisor();
  let lifeline: Lifeline | undefined;
  let disk: Disposable | undefined;
  const givenUp = new AbortController();
  const stop = async (): Promise<void> => {
    disk?.[Symbol.dispose]();
    await supervisor.stop();
    lifeline?.[Symbol.dispose]();
    await unlock();
  };
  try {
    awaitEarlier(dataDir);
    const local = await localTopology(wanted);
    if (local.ownNats) lifeline = createLifeline(dataDir);
    const parts = partsOf(local, { logs, lifeline, scripts: options.scripts });
    for (const part of parts) await supervisor.add(part);
    const ready = allReady(parts, tls, AbortSignal.any([signal, givenUp.signal]));
    await Promise.race([ready, supervisor.failed]);
    supervisor.settled();
    if (local.ownNats) disk = watchDisk(local, () => supervisor.restart('nats-server'));
    return { local, addresses: addressesOf(local), logs, supervisor, stop };
  } catch (error) {
    givenUp.abort();
    await tellFullDisk(dataDir);
    await stop();
    throw error;
  }
}

/** Its folders, and the lock, which what is returned gives back. Throws INVALID_CONFIG. */
async function openDataDir(
  { topology: { data_dir: dataDir }, named }: Wanted,
  logs: string,
): Promise<() => Promise<void>> {
  try {
    for (const folder of [logs, join(dataDir, 'run')]) makeFolders(folder);
    return await lockDataDir(dataDir);
  } catch (error) {
    if (error instanceof PolarError) throw error;
    const description = `${dataDir} cannot be used: ${(error as Error).message}`;
    throw faulty('INVALID_CONFIG', named, [{ field: 'data_dir', description }]);
  }
}

interface Part extends Supervised {
  /** Answers with 200 when the part is ready; none: others tell by not being ready. */
  readonly readyUrl?: string;
}

interface Surroundings {
  readonly logs: string;
  readonly lifeline: Lifeline | undefined;
  readonly scripts: readonly string[];
}

/** Everything that runs; what others need comes first. */
function partsOf(local: LocalTopology, { logs, lifeline, scripts }: Surroundings): Part[] {
  const logOf = (name: string): string => join(logs, `${name}.log`);
  const compileCache = join(environment.cacheDir, 'compiled');
  const nats: Part | undefined = lifeline && {
    name: 'nats-server',
    layer: 'store',
    logFile: logOf('nats-server'),
    start: () => startNatsServer(local, lifeline, logOf('nats-server')),
  };
  const engines = local.embedded.map((embedded): Part => {
    const name = local.embedded.length === 1 ? 'engine' : `engine-${embedded.dialect}`;
    const logFile = logOf(name);
    const start = () => startEngine({ ...embedded, scripts, logFile, compileCache });
    return { name, layer: 'mesh', logFile, start, readyUrl: `http://127.0.0.1:${embedded.port}/health` };
  });
  const env = {
    ...inherited,
    POLAR_TOPOLOGY: local.file,
    POLAR_NATS_URL: local.natsUrl,
    POLAR_LIFELINE: 'stdin',
    // For a scheduler beside others: here each has what the topology says.
    POLAR_ROLLOUT_PORT: undefined,
    POLAR_ROLLOUT_PUBLIC_URL: undefined,
    NODE_COMPILE_CACHE: compileCache,
  };
  const services = servicesOf(local).map(({ name, nodeId, label }): Part => {
    const logFile = logOf(label);
    const start = () =>
      startChild({
        command: process.execPath,
        args: [...nodeFlagsOf(name), mainOf(name)],
        env: nodeId === undefined ? env : { ...env, POLAR_GATEWAY_NODE_ID: nodeId },
        output: { file: logFile },
        ...(lifeline && { third: lifeline.users }),
      });
    const layer = nodeId === undefined ? 'mesh' : 'node';
    return {
      name: label,
      layer,
      logFile,
      start,
      readyUrl: `${addressOf(local.topology, name, nodeId)}/readyz`,
    };
  });
  return [...(nats ? [nats] : []), ...engines, ...services];
}

interface ServiceOf {
  readonly name: ServiceName;
  readonly nodeId: string | undefined;
  /** The service, and the node where there are several. */
  readonly label: string;
}

function servicesOf({ topology }: LocalTopology): ServiceOf[] {
  const { nodes } = topology.gateway;
  return SERVICES.flatMap((name): ServiceOf[] => {
    if (!NODE_SERVICES.includes(name)) return [{ name, nodeId: undefined, label: name }];
    return nodes.map(({ id }) => ({ name, nodeId: id, label: nodes.length === 1 ? name : `${name}-${id}` }));
  });
}

async function allReady(
  parts: readonly Part[],
  tls: CertificateStore | undefined,
  signal: AbortSignal,
): Promise<void> {
  const until = performance.now() + READY_MS;
  const waits = parts.map(async ({ name, logFile, readyUrl }) => {
    while (readyUrl !== undefined && !(await answersOk(readyUrl, tls))) {
      signal.throwIfAborted();
      if (performance.now() > until) {
        throw new PolarError('STAGE_TIMEOUT', `${name} was not ready within ${READY_MS} ms; see ${logFile}`);
      }
      await sleep(READY_CHECK_MS, signal);
    }
  });
  await Promise.all(waits);
}

function addressesOf({ topology, natsShown }: LocalTopology): Record<string, string> {
  const { nodes } = topology.gateway;
  const proxies = nodes.map(({ id }) => [`llm-proxy of ${id}`, addressOf(topology, 'llm-proxy', id)]);
  const engines = new Set(
    nodes.flatMap(({ inference: { servers, base_url: url } }) => (servers.length > 0 ? servers : [url])),
  );
  return {
    'tasks (RolloutService)': addressOf(topology, 'scheduler'),
    'trajectories (TrajectoryService)': addressOf(topology, 'reconstructor'),
    ...(Object.fromEntries(proxies) as Record<string, string>),
    engine: [...engines].join(', '),
    nats: natsShown,
  };
}
