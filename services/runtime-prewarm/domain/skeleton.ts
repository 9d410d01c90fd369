// The root of a sandbox with image `host`: small, its own, with the host's programs laid over it read-only.

/** Folders, parents first, with their permission bits. */
export const SKELETON_FOLDERS: readonly (readonly [path: string, mode: number])[] = [
  ['etc', 0o755],
  ['etc/ssl', 0o755],
  ['usr', 0o755],
  ['proc', 0o755],
  ['dev', 0o755],
  ['root', 0o700],
  ['home', 0o755],
  ['opt', 0o755],
  ['run', 0o755],
  ['tmp', 0o1777],
  ['var', 0o755],
  ['var/tmp', 0o1777],
];

/** Every sandbox has these, whatever its image. */
export const SESSION_FOLDERS: readonly string[] = [
  'polar',
  'polar/session',
  'polar/session/workspace',
  'polar/session/logs',
  'polar/session/logs/agent',
  'polar/session/artifacts',
];

export const SKELETON_FILES: readonly (readonly [path: string, content: string])[] = [
  [
    'etc/passwd',
    'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  ],
  ['etc/group', 'root:x:0:\nnogroup:x:65534:\n'],
  ['etc/hosts', '127.0.0.1 localhost sandbox\n::1 localhost\n'],
  ['etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files\n'],
  ['etc/resolv.conf', ''],
];

/** Top folders that are links into /usr on most hosts, and real folders on a few. */
export const PROGRAM_FOLDERS: readonly string[] = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

/** What the host's programs read beside /usr; nothing else of the host's /etc is shown. */
export const HOST_ETC: readonly string[] = [
  '/etc/alternatives',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
];

/** Top folders whose content is not the sandbox's own: files there cannot be written or read from outside. */
export const COVERED_FOLDERS: readonly string[] = ['usr', 'proc', 'dev', ...PROGRAM_FOLDERS];
