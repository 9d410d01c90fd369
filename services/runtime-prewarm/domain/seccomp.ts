// A seccomp BPF program: closes what user, network and pid namespaces leave open. A deny list: harnesses are unmodified
// programs, and an allow list would break the next one.
//
// Refused: nested namespaces, odd socket families (AF_VSOCK ignores network namespaces), io_uring, bpf, perf, keyrings,
// userfaultfd, mounts, modules, kexec, reading other processes' memory.

export type SeccompArch = 'x64' | 'arm64';

interface Syscalls {
  readonly audit: number;
  readonly socket: number;
  readonly clone: number;
  readonly unshare: number;
  readonly clone3: number;
  readonly denied: readonly number[];
  /** pivot_root chroot mount umount2 setns: a launcher makes a sandbox with them. */
  readonly mounts: readonly number[];
}

const COMMON_DENIED = [425, 426, 427]; // io_uring_*
const COMMON_MOUNTS = [428, 429, 430, 431, 432, 433, 442]; // open_tree … fspick, mount_setattr
const SYSCALLS: Record<SeccompArch, Syscalls> = {
  x64: {
    audit: 0xc000003e,
    socket: 41,
    clone: 56,
    unshare: 272,
    clone3: 435,
    // swapon swapoff reboot init_module delete_module lookup_dcookie kexec_load add_key request_key keyctl perf_event_open
    // name_to_handle_at open_by_handle_at process_vm_readv process_vm_writev finit_module kexec_file_load bpf userfaultfd
    denied: [167, 168, 169, 175, 176, 212, 246, 248, 249, 250, 298, 303, 304, 310, 311, 313, 320, 321, 323],
    mounts: [155, 161, 165, 166, 308],
  },
  arm64: {
    audit: 0xc00000b7,
    socket: 198,
    clone: 220,
    unshare: 97,
    clone3: 435,
    denied: [104, 105, 106, 217, 218, 219, 224, 225, 241, 264, 265, 270, 271, 273, 280, 282, 294, 18, 142],
    mounts: [39, 40, 41, 51, 268],
  },
};

const SOCKET_FAMILIES = [1, 2, 10, 16]; // AF_UNIX AF_INET AF_INET6 AF_NETLINK
const CLONE_NAMESPACES = 0x7e020000; // CLONE_NEW{USER,PID,NET,IPC,UTS,CGROUP,NS}
const CLONE_NEWTIME = 0x80; // An exit signal for clone, a namespace for unshare.
const ERRNO = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 };
const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const X32_BIT = 0x40000000;
const OFFSET = { nr: 0, arch: 4, arg0: 16 };
const OP = { load: 0x20, ret: 0x06, jeq: 0x15, jge: 0x35, jset: 0x45 };

interface Instruction {
  readonly op: number;
  /** Instructions skipped where the test holds, and where it does not. */
  readonly jt: number;
  readonly jf: number;
  readonly k: number;
}

const refuse = (errno: number): number => 0x00050000 | errno;
const load = (k: number): Instruction => ({ op: OP.load, jt: 0, jf: 0, k });
const answer = (k: number): Instruction => ({ op: OP.ret, jt: 0, jf: 0, k });
const when = (op: number, k: number, body: readonly Instruction[]): Instruction[] => [
  { op, jt: 0, jf: body.length, k },
  ...body,
];
const whenEqual = (k: number, body: readonly Instruction[]): Instruction[] => when(OP.jeq, k, body);

/**
 * The program as bwrap's `--seccomp` takes it. `around`: a launcher runs under it, which mounts and makes namespaces itself, and
 * refuses that to what it runs (`launcherSeccomp`).
 */
export function seccompProgram(arch: SeccompArch, around: 'command' | 'launcher' = 'command'): Uint8Array {
  const calls = SYSCALLS[arch];
  const isInside = around === 'command';
  const withoutNamespaces = (flags: number): Instruction[] => [
    load(OFFSET.arg0),
    ...when(OP.jset, flags, [answer(refuse(ERRNO.EPERM))]),
    answer(ALLOW),
  ];
  const program = [
    load(OFFSET.arch),
    { op: OP.jeq, jt: 1, jf: 0, k: calls.audit },
    answer(KILL),
    load(OFFSET.nr),
    ...(arch === 'x64' ? when(OP.jge, X32_BIT, [answer(refuse(ERRNO.ENOSYS))]) : []),
    ...whenEqual(calls.socket, [
      load(OFFSET.arg0),
      ...SOCKET_FAMILIES.flatMap((family) => whenEqual(family, [answer(ALLOW)])),
      answer(refuse(ERRNO.EAFNOSUPPORT)),
    ]),
    ...(isInside ? whenEqual(calls.clone, withoutNamespaces(CLONE_NAMESPACES)) : []),
    ...(isInside ? whenEqual(calls.unshare, withoutNamespaces(CLONE_NAMESPACES | CLONE_NEWTIME)) : []),
    // Its flags lie behind a pointer; libc falls back to clone.
    ...whenEqual(calls.clone3, [answer(refuse(ERRNO.ENOSYS))]),
    ...[...calls.denied, ...COMMON_DENIED, ...(isInside ? [...calls.mounts, ...COMMON_MOUNTS] : [])].flatMap(
      (nr) => whenEqual(nr, [answer(refuse(ERRNO.EPERM))]),
    ),
    answer(ALLOW),
  ];
  return encoded(program);
}

function encoded(program: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [i, { op, jt, jf, k }] of program.entries()) {
    bytes.writeUInt16LE(op, i * 8);
    bytes[i * 8 + 2] = jt;
    bytes[i * 8 + 3] = jf;
    bytes.writeUInt32LE(k >>> 0, i * 8 + 4);
  }
  return bytes;
}
