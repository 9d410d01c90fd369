// How many sessions may run against the same engine: nodes that name the same servers share one cap. Where the cap has a
// lower bound, the limit between them follows what the engine bears: it rises by one while it is used and the engine keeps
// up, and falls by a part when calls queue or the cache is full. What runs is never stopped for it.
import { ENGINE_LIMIT_STEP_MS, ENGINE_PRESSURE_OLD_MS } from '../../common/limits.ts';
import type { NodeState } from './nodes.ts';

/** What the topology says of a node's engine. */
export interface EngineRule {
  readonly nodeId: string;
  readonly servers: readonly string[];
  /** Undefined: no cap. */
  readonly maxSessions: number | undefined;
  /** Undefined: the cap stands as it is. */
  readonly minSessions: number | undefined;
}

/** How the engine bears its load, by a node's LLM proxy. */
export interface Pressure {
  readonly callsWaiting: number;
  /** 0 to 1. */
  readonly cacheUse: number;
}

export interface Engine {
  /** Its servers. */
  readonly name: string;
  /** The smallest that any of its nodes sets. */
  readonly maxSessions: number;
  /** The same; as maxSessions where none sets it. */
  readonly minSessions: number;
  readonly nodeIds: readonly string[];
  /** What may run now. */
  limit: number;
}

type NodeOf = (id: string) => NodeState | undefined;

/** Queued calls for each session that runs, from which on the engine does not keep up. */
const WAITING_PART_MAX = 0.1;
/** From which on it will soon throw out what it will need again. */
const CACHE_USE_MAX = 0.95;
/** What is left of the limit after a fall. */
const FALL_TO = 0.75;

export class Engines {
  readonly #byNode = new Map<string, Engine>();
  /** By node. */
  readonly #told = new Map<string, { readonly pressure: Pressure; readonly atMs: number }>();
  readonly #steppedMs = new Map<Engine, number>();

  constructor(rules: readonly EngineRule[] = []) {
    const names = new Set(rules.map(nameOf));
    for (const name of names) {
      const engine = engineOf(
        name,
        rules.filter((rule) => nameOf(rule) === name),
      );
      if (engine === undefined) continue;
      for (const nodeId of engine.nodeIds) this.#byNode.set(nodeId, engine);
    }
  }

  /** The capped engine of a node. */
  of(nodeId: string): Engine | undefined {
    return this.#byNode.get(nodeId);
  }

  /** The engine of a node that has as many sessions as it may have; undefined where one more may run. */
  full(nodeId: string, nodeOf: NodeOf): Engine | undefined {
    const engine = this.#byNode.get(nodeId);
    return engine !== undefined && running(engine, nodeOf) >= engine.limit ? engine : undefined;
  }

  /** A proxy tells how its engine does. Returns the engine if its limit is another one now. */
  told(nodeId: string, pressure: Pressure, nowMs: number, nodeOf: NodeOf): Engine | undefined {
    const engine = this.#byNode.get(nodeId);
    if (engine === undefined || engine.minSessions === engine.maxSessions) return undefined;
    this.#told.set(nodeId, { pressure, atMs: nowMs });
    if (nowMs - (this.#steppedMs.get(engine) ?? Number.NEGATIVE_INFINITY) < ENGINE_LIMIT_STEP_MS) {
      return undefined;
    }
    this.#steppedMs.set(engine, nowMs);
    const before = engine.limit;
    engine.limit = nextLimit(engine, running(engine, nodeOf), this.#worst(engine, nowMs));
    return engine.limit === before ? undefined : engine;
  }

  /** All proxies see the same engine, each its own waiting calls too. */
  #worst({ nodeIds }: Engine, nowMs: number): Pressure {
    const fresh = nodeIds
      .map((id) => this.#told.get(id))
      .filter((told) => told !== undefined && nowMs - told.atMs <= ENGINE_PRESSURE_OLD_MS)
      .map((told) => told?.pressure);
    return {
      callsWaiting: Math.max(0, ...fresh.map((one) => one?.callsWaiting ?? 0)),
      cacheUse: Math.max(0, ...fresh.map((one) => one?.cacheUse ?? 0)),
    };
  }
}

/** Additive rise, multiplicative fall. A fall waits until what runs has come down to the last one. */
export function nextLimit(
  { limit, minSessions, maxSessions }: Pick<Engine, 'limit' | 'minSessions' | 'maxSessions'>,
  sessions: number,
  { callsWaiting, cacheUse }: Pressure,
): number {
  if (callsWaiting > sessions * WAITING_PART_MAX || cacheUse >= CACHE_USE_MAX) {
    return sessions > limit ? limit : Math.max(minSessions, Math.floor(limit * FALL_TO));
  }
  return sessions >= limit ? Math.min(maxSessions, limit + 1) : limit;
}

function engineOf(name: string, rules: readonly EngineRule[]): Engine | undefined {
  const least = (numbers: (number | undefined)[]): number =>
    Math.min(...numbers.map((one) => one ?? Number.POSITIVE_INFINITY));
  const maxSessions = least(rules.map((rule) => rule.maxSessions));
  if (!Number.isFinite(maxSessions)) return undefined;
  const minSessions = Math.min(maxSessions, least(rules.map((rule) => rule.minSessions)));
  return { name, maxSessions, minSessions, nodeIds: rules.map(({ nodeId }) => nodeId), limit: maxSessions };
}

const running = ({ nodeIds }: Engine, nodeOf: NodeOf): number =>
  nodeIds
    .map((id) => nodeOf(id))
    .reduce((sum, node) => sum + (node?.running.size ?? 0) + (node?.open.size ?? 0), 0);

const nameOf = ({ servers }: EngineRule): string => [...servers].sort().join(', ');
