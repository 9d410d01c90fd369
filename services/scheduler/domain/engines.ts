// How many sessions may run against the same engine: nodes that name the same servers share one cap.
import type { NodeState } from './nodes.ts';

/** What the topology says of a node's engine. */
export interface EngineRule {
  readonly nodeId: string;
  readonly servers: readonly string[];
  /** Undefined: no cap. */
  readonly maxSessions: number | undefined;
}

export interface Engine {
  /** Its servers. */
  readonly name: string;
  /** The smallest that any of its nodes sets. */
  readonly maxSessions: number;
  readonly nodeIds: readonly string[];
}

export class Engines {
  readonly #byNode = new Map<string, Engine>();

  constructor(rules: readonly EngineRule[] = []) {
    for (const rule of rules) {
      const same = rules.filter((other) => nameOf(other) === nameOf(rule));
      const maxSessions = Math.min(...same.map((other) => other.maxSessions ?? Number.POSITIVE_INFINITY));
      if (!Number.isFinite(maxSessions)) continue;
      const nodeIds = same.map(({ nodeId }) => nodeId);
      this.#byNode.set(rule.nodeId, { name: nameOf(rule), maxSessions, nodeIds });
    }
  }

  /** The engine of a node that has as many sessions as it may have; undefined where one more may run. */
  full(nodeId: string, nodeOf: (id: string) => NodeState | undefined): Engine | undefined {
    const engine = this.#byNode.get(nodeId);
    if (engine === undefined) return undefined;
    const running = engine.nodeIds.reduce((sum, id) => sum + (nodeOf(id)?.running.size ?? 0), 0);
    return running >= engine.maxSessions ? engine : undefined;
  }
}

const nameOf = ({ servers }: EngineRule): string => [...servers].sort().join(', ');
