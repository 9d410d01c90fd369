// What apptainer is told for one command: its arguments, its configuration, and the script that begins inside.
import type { LaunchFds, LaunchOptions } from './launch-options.ts';

export interface ApptainerProgram {
  /** Path of it. */
  readonly path: string;
  /** Rules for what runs inside, as containerSeccomp gives them. */
  readonly seccomp: string;
  /** An empty folder: it tells what runs inside where its root lies, which is therefore shown there. */
  readonly place: string;
  /** Root inside may do with the sandbox's users and their files what a root may. */
  readonly keepsRights: boolean;
}

/** Whatever the site's own says: nothing of the host comes in by itself. */
const CONFIGURATION = [
  ...['config passwd', 'config group', 'config resolv_conf', 'mount sys', 'mount home', 'mount tmp'],
  ...[
    'mount hostfs',
    'enable overlay',
    'enable underlay',
    'always use nv',
    'always use rocm',
    'allow setuid',
  ],
]
  .map((name) => `${name} = no\n`)
  .concat('mount dev = minimal\n')
  .join('');

const FLAGS = [
  ...['--containall', '--no-home', '--cleanenv', '--no-eval', '--writable', '--hostname', 'sandbox'],
  ...['--pwd', '/', '--no-mount', '/etc/localtime,/etc/hosts'],
];

/** Of its own making, which say where things lie on the host. */
const SAID_INSIDE = ['APPTAINER', 'SINGULARITY'].flatMap((name) =>
  ['APPNAME', 'BIND', 'COMMAND', 'CONTAINER', 'ENVIRONMENT', 'NAME', 'NO_EVAL'].map((of) => `${name}_${of}`),
);
const UNSET = [...SAID_INSIDE, 'PS1', 'PROMPT_COMMAND'];
/** What it adds to the image's LD_LIBRARY_PATH, where there is one, or makes it; nothing lies in it. */
const LIBRARIES = [':/.singularity.d/libs', '/.singularity.d/libs'];

/** Where it shows what it makes itself. */
const OWN_FOLDERS = ['/dev', '/proc', '/etc'];

/** Nothing is read or written at these places. */
const ENV = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', APPTAINER_CONFIGDIR: '/nonexistent' };

const own = (fd: number): string => `/proc/self/fd/${fd}`;

/** The first that neither is nor holds anything needed: that could not be seen any more. */
export const placeBeside = (places: readonly string[], needed: readonly string[]): string | undefined =>
  places.find((place) => needed.every((path) => !`${path}/`.startsWith(`${place}/`)));

/** What enter.py reads to run a command. */
export function apptainerLaunch(
  program: ApptainerProgram,
  { root, readOnly, readOnlyTry, devices, cwd, env, idMap }: LaunchOptions,
  fds: LaunchFds,
): string {
  const shown = [...readOnly, ...readOnlyTry];
  // Descriptors that enter.py has done with.
  const [script, configuration, seccomp] = [fds.args, fds.block, fds.seccomp];
  return JSON.stringify({
    argv: [
      ...[program.path, '--silent', '--config', own(configuration), 'exec', ...FLAGS],
      ...[
        program.keepsRights ? '--keep-privs' : '--no-privs',
        '--security',
        `seccomp:${own(seccomp)}`,
        ...shown.flatMap(bound),
        ...devices.flatMap(([source, target]) => ['--bind', `${source}:${target}`]),
      ],
      ...[program.place, '/bin/sh', '-c', `. ${own(script)}`, 'sh'],
    ],
    env: ENV,
    files: {
      [script]: scriptOf(cwd, env, fds, [script, configuration, seccomp]),
      [configuration]: CONFIGURATION,
      [seccomp]: program.seccomp,
    },
    ...{
      maps: idMap === 'own',
      root,
      place: program.place,
      sources: shown.map(([source]) => source),
      folders: [...OWN_FOLDERS, ...readOnly.map(([, target]) => target)],
      places: readOnlyTry,
    },
    ...fds,
  });
}

/**
 * The exit code of a command for which /bin/sh could not be started, which is the sandbox's own and may be gone: as of bwrap where
 * a program cannot be. Undefined: the sandbox itself failed.
 */
export function shellFailureExitCode(stderr: string): number | undefined {
  const last = stderr.trimEnd().split('\n').at(-1) ?? '';
  if (!/^FATAL: +(stat \/bin\/sh: |exec \/bin\/sh failed: )/.test(last)) return undefined;
  return /: (no such file|not a) /.test(last) ? 127 : 126;
}

/** Comma-separated values, as the flag takes them. */
const bound = ([source, target]: readonly [string, string]): string[] => {
  const fields = ['type=bind', `source=${source}`, `destination=${target}`, 'ro'];
  return ['--mount', fields.map((field) => `"${field.replaceAll('"', '""')}"`).join(',')];
};

/** It says that the command has come to run, and is gone when that begins. */
function scriptOf(
  cwd: string,
  env: LaunchOptions['env'],
  { status }: LaunchFds,
  opened: readonly number[],
): string {
  return [
    `unset ${UNSET.join(' ')}`,
    ...LIBRARIES.map((folder) => `LD_LIBRARY_PATH=\${LD_LIBRARY_PATH%${folder}}`),
    'test -n "$LD_LIBRARY_PATH" || unset LD_LIBRARY_PATH',
    // As a command: a name that is the shell's own, as UID is bash's, would end the script.
    ...['{ :', ...Object.entries(env).map(([name, value]) => `command export ${name}=${quoted(value)}`)],
    '} 2> /dev/null',
    `echo '{"started": 1}' >&${status}`,
    `exec ${[status, ...opened].map((fd) => `${fd}>&-`).join(' ')}`,
    `cd ${quoted(cwd)} || exit 126`,
    'unset OLDPWD',
    'exec "$@"\n',
  ].join('\n');
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
