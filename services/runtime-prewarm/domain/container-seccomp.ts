// The deny list of seccomp.ts in the form that container engines take: calls by name, rules in place of a program.
// Calls of another architecture's table end the process, as there.

interface Rule {
  readonly names: readonly string[];
  readonly action: 'SCMP_ACT_ERRNO';
  readonly errnoRet: number;
  readonly args?: readonly Comparison[];
}

interface Comparison {
  readonly index: 0;
  readonly op: 'SCMP_CMP_EQ' | 'SCMP_CMP_GT' | 'SCMP_CMP_LT' | 'SCMP_CMP_MASKED_EQ';
  readonly value: number;
  readonly valueTwo?: number;
}

const ERRNO = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 };
const MOUNTS = [
  ...['pivot_root', 'chroot', 'mount', 'umount2', 'setns', 'open_tree', 'move_mount'],
  ...['fsopen', 'fsconfig', 'fsmount', 'fspick', 'mount_setattr'],
];
const DENIED = [
  ...['swapon', 'swapoff', 'reboot', 'init_module', 'delete_module'],
  ...['lookup_dcookie', 'kexec_load', 'add_key', 'request_key', 'keyctl', 'perf_event_open'],
  ...['name_to_handle_at', 'open_by_handle_at', 'process_vm_readv', 'process_vm_writev'],
  ...['finit_module', 'kexec_file_load', 'bpf', 'userfaultfd'],
  ...['io_uring_setup', 'io_uring_enter', 'io_uring_register'],
];
const SOCKET_FAMILIES = [1, 2, 10, 16]; // AF_UNIX AF_INET AF_INET6 AF_NETLINK
const NEW_NAMESPACES = [0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00020000];
const NEW_TIME_NAMESPACE = 0x80;

/** The text that goes into SecurityOpt, or into a file that it names. */
export function containerSeccomp(): string {
  return textOf([
    refuse(DENIED, ERRNO.EPERM),
    // Its flags lie behind a pointer; libc falls back to clone.
    refuse(['clone3'], ERRNO.ENOSYS),
    ...noMounts(),
    ...otherFamilies().map((test) => refuse(['socket'], ERRNO.EAFNOSUPPORT, test)),
  ]);
}

/** What a launcher that runs under a program of seccomp.ts is to refuse to what it runs. */
export const launcherSeccomp = (): string => textOf(noMounts());

const noMounts = (): Rule[] => [
  refuse(MOUNTS, ERRNO.EPERM),
  ...NEW_NAMESPACES.map((flag) => refuse(['clone', 'unshare'], ERRNO.EPERM, hasFlag(flag))),
  refuse(['unshare'], ERRNO.EPERM, hasFlag(NEW_TIME_NAMESPACE)),
];

const textOf = (rules: readonly Rule[]): string =>
  JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls: rules });

const refuse = (names: readonly string[], errnoRet: number, test?: Comparison): Rule => ({
  ...{ names, action: 'SCMP_ACT_ERRNO', errnoRet },
  ...(test && { args: [test] }),
});

const hasFlag = (flag: number): Comparison => ({
  ...{ index: 0, op: 'SCMP_CMP_MASKED_EQ', value: flag, valueTwo: flag },
});

/** One comparison for each: two of the same argument mean "or" to an engine. */
function otherFamilies(): Comparison[] {
  const last = Math.max(...SOCKET_FAMILIES);
  const between = Array.from({ length: last }, (_, family) => family).filter(
    (family) => !SOCKET_FAMILIES.includes(family),
  );
  return [
    ...between.map((value): Comparison => ({ index: 0, op: 'SCMP_CMP_EQ', value })),
    { index: 0, op: 'SCMP_CMP_GT', value: last },
  ];
}
