// The container engines of a cluster: all its nodes use them, and some of its tasks.
import type { TestEngine } from '../support/container-engine.ts';

export interface ClusterEngine {
  readonly backend: 'docker' | 'podman';
  readonly engine: TestEngine;
  /** What tasks name. */
  readonly image: string;
  /** What a node's topology says of it. */
  readonly node: object;
}

export const engineOf = (
  engines: readonly ClusterEngine[],
  name: ClusterEngine['backend'],
): TestEngine | undefined => engines.find(({ backend }) => backend === name)?.engine;
