// The container engines of a cluster: all its nodes use them, and some of its tasks.
import type { TestDocker } from '../support/docker.ts';

export interface ClusterEngine {
  readonly backend: 'docker' | 'podman';
  readonly engine: TestDocker;
  /** What tasks name. */
  readonly image: string;
  /** What a node's topology says of it. */
  readonly node: object;
}

export const engineOf = (
  engines: readonly ClusterEngine[],
  name: ClusterEngine['backend'],
): TestDocker | undefined => engines.find(({ backend }) => backend === name)?.engine;
