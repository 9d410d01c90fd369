// The container engines that tests with containers run against: one interface, a backend each.
import type { TestEngine } from './container-engine.ts';
import { dockerIsThere, startDockerWithPrograms } from './docker.ts';
import { isLong } from './long.ts';
import { podmanIsThere, startPodmanWithPrograms } from './podman.ts';

export interface EngineKind {
  readonly backend: 'docker' | 'podman';
  readonly title: string;
  /** Root inside is another user outside. */
  readonly mapped: boolean;
  /** With PROGRAMS_IMAGE. */
  start(): Promise<TestEngine>;
}

const DOCKER: readonly EngineKind[] = [
  { backend: 'docker', title: 'docker', mapped: false, start: () => startDockerWithPrograms() },
  {
    ...{ backend: 'docker', title: 'docker, users mapped', mapped: true },
    start: () => startDockerWithPrograms({ remapped: true }),
  },
];
const PODMAN: readonly EngineKind[] = [
  { backend: 'podman', title: 'podman', mapped: false, start: startPodmanWithPrograms },
  { backend: 'podman', title: 'podman, users mapped', mapped: true, start: startPodmanWithPrograms },
];

/** Those that are here, in each of their ways. */
export const ENGINES: readonly EngineKind[] = [
  ...(dockerIsThere ? DOCKER : []),
  ...(podmanIsThere ? PODMAN : []),
];

/** Those that are here, each as it comes. */
export const PLAIN_ENGINES = ENGINES.filter(({ mapped }) => !mapped);

/** For tests that take long in every engine, each as it comes: CI has them in docker at most, whose code podman shares. */
export const LONG_ENGINES = PLAIN_ENGINES.filter(({ backend }) => backend === 'docker' || isLong);

/**
 * Those that are here, each in a way that holds under load: Podman 4.3 that maps users was seen to answer no more, with the locks
 * of its storage held, where eight containers were made and deleted at once.
 */
export const UNDER_LOAD = ENGINES.filter(({ backend, mapped }) => mapped === (backend === 'docker'));

/** What a node of the topology says of it. */
export const nodeWith = (
  { backend, mapped }: EngineKind,
  { socket }: Pick<TestEngine, 'socket'>,
  pull = 'never',
) => (backend === 'podman' ? { podman: { socket, pull, map_users: mapped } } : { docker: { socket, pull } });
