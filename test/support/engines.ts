// The container engines that tests with containers run against: one interface, a backend each.
import { dockerIsThere, startDockerWithPrograms, type TestDocker } from './docker.ts';
import { podmanIsThere, startPodmanWithPrograms } from './podman.ts';

export interface EngineKind {
  readonly backend: 'docker' | 'podman';
  readonly title: string;
  /** Root inside is another user outside. */
  readonly mapped: boolean;
  /** With PROGRAMS_IMAGE. */
  start(): Promise<TestDocker>;
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

/** What a node of the topology says of it. */
export const nodeWith = ({ backend, mapped }: EngineKind, { socket }: TestDocker, pull = 'never') =>
  backend === 'podman' ? { podman: { socket, pull, map_users: mapped } } : { docker: { socket, pull } };
