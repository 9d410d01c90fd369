// What strikes a cluster: which kind comes next is dealt from a seed; which process of that kind, too.
import { globSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { NODE_SERVICES } from '../../clients/cli/services.ts';
import { sleep } from '../../services/common/clock.ts';
import type { TestEngine } from '../support/container-engine.ts';
import { eventually } from '../support/eventually.ts';
import type { TestNats } from '../support/nats.ts';
import type { Cluster, ClusterNode } from './cluster.ts';
import { engineOf } from './engines.ts';
import { freeze } from './freeze.ts';
import type { Kept } from './kept.ts';

/**
 * SIGKILL each, or for services SIGTERM as often. `node`: all processes of one stand still, and go on when they are long given
 * up; `stopped node`: all services of one are asked to end at once, as where a machine is taken away.
 */
const KINDS = [
  ...NODE_SERVICES,
  'scheduler',
  'reconstructor',
  'nats-server',
  'dockerd',
  'podman',
  'harness',
  'guardian',
  'node',
  'stopped node',
] as const;
export type StrikeKind = (typeof KINDS)[number];

const NODE_AWAY_MS = 12_000;
const SERVER_AWAY_MS = 500;
/** A node that a scheduler has surely heard of. */
const SETTLED_MS = 10_000;
/** What a node that returns may take to find out. */
const FENCE_MS = 10_000;
/** Of the log of a node that does what it must not. */
const TOLD_LINES = 200;
/** In the log of a node. */
const STARTED = '"msg":"ready"';
const FENCED = 'the node counts as started anew';
const PREPARED = 'runtime prepared';

export class Strikes {
  /** How many of each kind hit something. */
  readonly hits = new Map<StrikeKind, number>();
  /** Nodes that came back and had sandboxes when they were lost, and of them those that gave these up. */
  returned = 0;
  fenced = 0;
  readonly #cluster: Cluster;
  readonly #random: () => number;
  readonly #say: (text: string) => void;
  #deck: StrikeKind[] = [];
  #away: ClusterNode | undefined;
  readonly #kinds: readonly StrikeKind[];
  readonly #pending: Promise<void>[] = [];

  constructor(cluster: Cluster, random: () => number, say: (text: string) => void) {
    this.#cluster = cluster;
    this.#random = random;
    this.#say = say;
    const has = (backend: 'docker' | 'podman'): boolean => engineOf(cluster.engines, backend) !== undefined;
    this.#kinds = KINDS.filter(
      (kind) => (kind !== 'dockerd' || has('docker')) && (kind !== 'podman' || has('podman')),
    );
  }

  get count(): number {
    return [...this.hits.values()].reduce((sum, one) => sum + one, 0);
  }

  /** One at a time until the signal aborts or there were so many; resolves when all that was away is back. */
  async run(everyMs: number, most: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.count < most) {
      await sleep(everyMs * (0.5 + this.#random()), signal);
      if (!signal.aborted) await this.#strike(this.#deal());
    }
    await Promise.all(this.#pending);
  }

  /** Every kind comes once before one comes again. */
  #deal(): StrikeKind {
    if (this.#deck.length === 0) this.#deck = [...this.#kinds];
    return this.#deck.splice(Math.floor(this.#random() * this.#deck.length), 1)[0] as StrikeKind;
  }

  async #strike(kind: StrikeKind): Promise<void> {
    const target = await this.#hit(kind);
    if (target === undefined) return void this.#deck.push(kind);
    this.hits.set(kind, (this.hits.get(kind) ?? 0) + 1);
    this.#say(`${(performance.now() / 1000).toFixed(1)} s: ${target}`);
  }

  /** What was hit; undefined: nothing of the kind was there. */
  async #hit(kind: StrikeKind): Promise<string | undefined> {
    const { schedulers, reconstructor, nodes, engines } = this.#cluster;
    const node = this.#pick(nodes.filter((one) => one !== this.#away));
    switch (kind) {
      case 'scheduler':
        return this.#end(this.#pick(schedulers));
      case 'reconstructor':
        return this.#end(reconstructor);
      case 'nats-server':
        return await restarted('nats-server', this.#cluster.nats);
      case 'dockerd':
        return await restarted('dockerd', engineOf(engines, 'docker') as TestEngine);
      case 'podman':
        return await restarted('podman', engineOf(engines, 'podman') as TestEngine);
      case 'harness':
        return killedPid('a process of a sandbox on', node, this.#pick(sandboxed(node)));
      case 'guardian':
        return killedPid('the guardian of', node, guardianOf(node));
      case 'stopped node':
        return stopped(node);
      case 'node':
        return this.#freeze(
          this.#pick(nodes.filter((one) => isSettled(one) && guardianOf(one) !== undefined)),
        );
      default:
        return this.#end(node.services[kind] as Kept);
    }
  }

  #end(one: Kept): string | undefined {
    const signal = this.#random() < 0.5 ? 'SIGTERM' : 'SIGKILL';
    return one.kill(signal) ? `${one.name} (${signal})` : undefined;
  }

  /** One at a time. */
  #freeze(node: ClusterNode | undefined): string | undefined {
    if (node === undefined || this.#away !== undefined) return undefined;
    // One that had let go a moment before, as no scheduler led, has nothing to give up.
    const [before, hasWork] = [this.#fences(node), this.#hasWork(node)];
    const frozen = freeze(Object.values(node.services).flatMap(({ pid }) => pid ?? []));
    this.#away = node;
    const back = async (): Promise<void> => {
      await sleep(NODE_AWAY_MS);
      await frozen.thaw();
      if (hasWork) await this.#returned(node, before);
      this.#away = undefined;
    };
    this.#pending.push(back());
    return `${node.id}, for ${NODE_AWAY_MS / 1000} s`;
  }

  async #returned(node: ClusterNode, before: number): Promise<void> {
    this.returned++;
    const isFenced = (): boolean => this.#fences(node) > before;
    await eventually('', isFenced, FENCE_MS).then(
      () => this.fenced++,
      () => this.#say(`${node.id} came back and was not fenced; it said:\n${this.#lastLines(node)}`),
    );
  }

  /** Whether a sandbox was made since its manager started or last let go. */
  #hasWork(node: ClusterNode): boolean {
    const log = this.#logOf(node);
    return log.includes(PREPARED, Math.max(0, log.lastIndexOf(STARTED), log.lastIndexOf(FENCED)));
  }

  #fences(node: ClusterNode): number {
    return this.#logOf(node).split(FENCED).length;
  }

  #lastLines(node: ClusterNode): string {
    return this.#logOf(node).split('\n').slice(-TOLD_LINES).join('\n');
  }

  #logOf({ id }: ClusterNode): string {
    return this.#cluster.log(`runtime-prewarm-${id}`);
  }

  #pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.#random() * all.length)] as T;
  }
}

const isSettled = ({ services }: ClusterNode): boolean =>
  (services['runtime-prewarm']?.ageMs ?? 0) > SETTLED_MS;

async function restarted(name: string, server: TestNats | TestEngine): Promise<string> {
  await server.kill();
  await sleep(SERVER_AWAY_MS);
  await server.start();
  return name;
}

function stopped({ id, services }: ClusterNode): string | undefined {
  const hit = Object.values(services).map((one) => one.kill('SIGTERM'));
  return hit.some(Boolean) ? `all services of ${id} (SIGTERM)` : undefined;
}

function killedPid(what: string, { id }: ClusterNode, pid: number | undefined): string | undefined {
  try {
    if (pid !== undefined && process.kill(pid, 'SIGKILL')) return `${what} ${id}`;
  } catch {
    // It has ended.
  }
  return undefined;
}

/** Processes in the sandboxes of a node, launchers among them. */
const sandboxed = ({ instance }: ClusterNode): number[] =>
  pidsIn(`/sys/fs/cgroup/{,*/}${instance}/*/cgroup.procs`);

/** The child of its manager that holds the lock. */
function guardianOf({ services, dataDir }: ClusterNode): number | undefined {
  const manager = services['runtime-prewarm']?.pid;
  if (manager === undefined) return undefined;
  return pidsIn(`/proc/${manager}/task/*/children`).find((pid) => {
    const command = textOf(`/proc/${pid}/cmdline`);
    return command.includes('guardian.sh') && command.includes(dataDir);
  });
}

const pidsIn = (files: string): number[] =>
  globSync(files).flatMap((file) => textOf(file).split(/\s+/).map(Number).filter(Boolean));

/** Empty where it has gone meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
