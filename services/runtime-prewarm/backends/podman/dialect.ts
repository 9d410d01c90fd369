// What Podman's service does in another way than Docker's engine, whose API it speaks (4.3).
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { containerSeccomp } from '../../domain/container-seccomp.ts';
import { hardLimitOf } from '../../domain/process-limits.ts';
import { SANDBOX_UID, SANDBOX_UID_COUNT } from '../../host/host.ts';
import { type ContainerNeeds, type Dialect, filesFor } from '../docker/dialect.ts';
import { usersOf } from '../docker/users.ts';
import { Monitors } from './monitors.ts';

/** Kernels refuse more open files. */
const OPEN_FILES_MAX = 1_048_576;
/** What runtime errors of a command end with. */
const CANNOT_START = [125, 126, 127];

/** `folder`: for files that containers are made with. `mapUsers`: root inside is SANDBOX_UID outside. */
export const podman = (folder: string, mapUsers: boolean, monitors = new Monitors()): Dialect => ({
  name: 'podman',
  layers: true,
  howToStart: 'start `podman system service`',
  check({ BuildahVersion, Rootless }) {
    if (BuildahVersion === undefined) throw new Error('it is not Podman: set gateway.nodes[].docker.socket');
    // It tells of limits that it ignores there, and leaves containers in its own control groups.
    if (Rootless) throw new Error('it is rootless, and cannot hold containers to limits: start it as root');
  },
  users: () => usersOf(mapUsers),
  // It passes over DeviceRequests without a word.
  gpus: (count, grant) => (count === 0 || grant === undefined ? {} : filesFor(grant)),
  config: () => needs(folder, mapUsers),
  // Short names are found under both.
  imageName: (tag) => tag.replace(/^(docker\.io\/library|localhost)\//, ''),
  // Before the start it looks as after one that ended with 0, but for this.
  hasEnded: ({ CanRemove }) => CanRemove,
  couldNotStart: (code, said) => CANNOT_START.includes(code) && /^Error: .*\bOCI\b/.test(said),
  forget: (container) => monitors.end(container),
});

/**
 * Rules of seccomp are taken from a file; users are mapped for each container, and else not, whatever Podman's own defaults
 * are; the limits that it would set by itself need CAP_SYS_RESOURCE; and it would show the host's own list of hosts.
 */
function needs(folder: string, mapUsers: boolean): ContainerNeeds {
  mkdirSync(folder, { recursive: true });
  const [seccomp, hosts] = ['seccomp.json', 'hosts'].map((name) => join(folder, name)) as [string, string];
  writeFileSync(seccomp, containerSeccomp());
  writeFileSync(hosts, '127.0.0.1 localhost sandbox\n::1 localhost\n');
  const map = `0:${SANDBOX_UID}:${SANDBOX_UID_COUNT}`;
  const own = readFileSync('/proc/self/limits', 'utf8');
  const processes = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'));
  const limits = {
    nofile: hardLimitOf(own, 'open files', OPEN_FILES_MAX),
    nproc: hardLimitOf(own, 'processes', processes),
  };
  return {
    seccomp,
    more: {
      UsernsMode: mapUsers ? `auto:uidmapping=${map},gidmapping=${map}` : 'host',
      Binds: [`${hosts}:/etc/hosts:ro`],
      Ulimits: Object.entries(limits).map(([Name, most]) => ({ Name, Soft: most, Hard: most })),
    },
  };
}
