// Arguments of bwrap for one command. They go through a descriptor: pid 1 inside shows its command line to everybody there.
import type { LaunchFds, LaunchOptions } from './launch-options.ts';

const NAMESPACES = ['user', 'pid', 'net', 'ipc', 'uts', 'cgroup'].map((name) => `--unshare-${name}`);

export function bwrapArgs(
  { root, readOnly, readOnlyTry, devices, cwd, env, idMap }: LaunchOptions,
  fds: LaunchFds,
): string[] {
  return [
    ...NAMESPACES,
    ...['--die-with-parent', '--new-session', '--hostname', 'sandbox', '--bind', root, '/'],
    ...readOnly.flatMap(([source, target]) => ['--ro-bind', source, target]),
    ...readOnlyTry.flatMap(([source, target]) => ['--ro-bind-try', source, target]),
    ...['--dev', '/dev'],
    ...devices.flatMap(([source, target]) => ['--dev-bind', source, target]),
    ...['--proc', '/proc', '--chdir', cwd, '--clearenv'],
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--json-status-fd', String(fds.status), '--seccomp', String(fds.seccomp)],
    // Both kinds of waiting: bwrap closes the descriptor in the command's own process only for the second.
    ...['--block-fd', String(fds.block)],
    // It insists on a second status descriptor where it waits for the id map, and closes it in every case.
    ...['--info-fd', String(fds.unread)],
    ...(idMap === 'own' ? ['--uid', '0', '--gid', '0'] : ['--userns-block-fd', String(fds.block)]),
  ];
}
