import { expect } from 'chai';
import { containerSeccomp, launcherSeccomp } from './container-seccomp.ts';

interface Rule {
  readonly names: string[];
  readonly errnoRet: number;
  readonly args?: { op: string; value: number; valueTwo?: number }[];
}

interface Profile {
  readonly defaultAction: string;
  readonly syscalls: readonly Rule[];
}

const { defaultAction, syscalls }: Profile = JSON.parse(containerSeccomp());

/** What the engine's filter answers: undefined lets the call through. */
function answer(name: string, arg = 0, rules = syscalls): number | undefined {
  const holds = ({ op, value, valueTwo = 0 }: { op: string; value: number; valueTwo?: number }): boolean => {
    if (op === 'SCMP_CMP_EQ') return arg === value;
    if (op === 'SCMP_CMP_GT') return arg > value;
    return op === 'SCMP_CMP_MASKED_EQ' && (arg & value) === valueTwo;
  };
  return rules.find(({ names, args = [] }) => names.includes(name) && args.every(holds))?.errnoRet;
}

describe('the seccomp rules of containers', () => {
  it('let through what they do not name', () => {
    expect(defaultAction).to.equal('SCMP_ACT_ALLOW');
    for (const name of ['read', 'openat', 'execve', 'fork', 'ptrace'])
      expect(answer(name), name).to.equal(undefined);
  });

  it('let four socket families through, and no vsock', () => {
    for (const family of [1, 2, 10, 16]) expect(answer('socket', family), String(family)).to.equal(undefined);
    for (const family of [0, 3, 9, 11, 15, 17, 38, 40]) {
      expect(answer('socket', family), String(family)).to.equal(97);
    }
  });

  it('refuse new namespaces by clone and unshare, not threads', () => {
    expect(answer('clone', 0x003d0f00)).to.equal(undefined);
    for (const flag of [0x10000000, 0x00020000, 0x40000000, 0x02000000]) {
      expect(answer('clone', flag | 17)).to.equal(1);
      expect(answer('unshare', flag)).to.equal(1);
    }
    expect([answer('unshare', 0x80), answer('clone', 0x80)]).to.eql([1, undefined]);
    expect(answer('clone3')).to.equal(38);
  });

  it('refuse mounts, keyrings, bpf and io_uring', () => {
    for (const name of ['mount', 'keyctl', 'bpf', 'io_uring_setup', 'mount_setattr']) {
      expect(answer(name), name).to.equal(1);
    }
  });

  it('are, for what runs below a filter of its own, those that this one leaves out, all with EPERM', () => {
    const { syscalls: rules }: Profile = JSON.parse(launcherSeccomp());
    for (const name of ['mount', 'setns', 'chroot', 'mount_setattr'])
      expect(answer(name, 0, rules), name).to.equal(1);
    expect([answer('unshare', 0x10000000, rules), answer('clone', 0x003d0f00, rules)]).to.eql([1, undefined]);
    // Apptainer would answer EPERM to it, and threads could not be made.
    expect(answer('clone3', 0, rules)).to.equal(undefined);
  });
});
