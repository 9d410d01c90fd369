import { expect } from 'chai';
import { type SeccompArch, seccompProgram } from './seccomp.ts';

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const errno = (n: number): number => 0x00050000 | n;

/** A small machine for the classic BPF that the program uses. */
function answer(
  arch: SeccompArch,
  call: { audit: number; nr: number; arg0?: number },
  around?: 'launcher',
): number {
  const program = Buffer.from(seccompProgram(arch, around));
  let a = 0;
  for (let pc = 0; pc < program.length / 8; pc++) {
    const op = program.readUInt16LE(pc * 8);
    const [jt = 0, jf = 0] = program.subarray(pc * 8 + 2, pc * 8 + 4);
    const k = program.readUInt32LE(pc * 8 + 4);
    if (op === 0x20) a = k === 0 ? call.nr : k === 4 ? call.audit : (call.arg0 ?? 0);
    else if (op === 0x06) return k;
    else if (op === 0x15) pc += a === k ? jt : jf;
    else if (op === 0x35) pc += a >= k ? jt : jf;
    else if (op === 0x45) pc += (a & k) !== 0 ? jt : jf;
    else throw new Error(`operation ${op}`);
  }
  throw new Error('the program has no end');
}

describe('seccompProgram', () => {
  const x64 = { audit: 0xc000003e };
  const call = (nr: number, arg0 = 0): number => answer('x64', { ...x64, nr, arg0 });

  it('lets the usual calls through', () => {
    for (const nr of [0, 1, 2, 9, 57, 59, 257]) expect(call(nr), String(nr)).to.equal(ALLOW);
  });

  it('lets four socket families through, and no vsock', () => {
    for (const family of [1, 2, 10, 16]) expect(call(41, family)).to.equal(ALLOW);
    for (const family of [17, 38, 40]) expect(call(41, family)).to.equal(errno(97));
  });

  it('refuses new namespaces by clone and unshare, not threads', () => {
    expect(call(56, 0x003d0f00)).to.equal(ALLOW);
    for (const flag of [0x10000000, 0x00020000, 0x40000000, 0x02000000]) {
      expect(call(56, flag | 17)).to.equal(errno(1));
      expect(call(272, flag)).to.equal(errno(1));
    }
    expect(call(272, 0x80)).to.equal(errno(1));
    expect(call(435)).to.equal(errno(38));
  });

  it('refuses mounts, keyrings, bpf, io_uring, and other ABIs', () => {
    for (const nr of [165, 250, 321, 425]) expect(call(nr)).to.equal(errno(1));
    expect(call(0x40000000)).to.equal(errno(38));
    expect(answer('x64', { audit: 0x40000003, nr: 1 })).to.equal(KILL);
  });

  it('leaves mounts and namespaces to a launcher, and nothing else', () => {
    const launcher = (nr: number, arg0 = 0): number => answer('x64', { ...x64, nr, arg0 }, 'launcher');
    for (const nr of [165, 155, 308, 429]) expect(launcher(nr), String(nr)).to.equal(ALLOW);
    expect([launcher(272, 0x10000000), launcher(56, 0x10000000)]).to.eql([ALLOW, ALLOW]);
    for (const nr of [250, 321, 425]) expect(launcher(nr), String(nr)).to.equal(errno(1));
    expect([launcher(41, 40), launcher(435)]).to.eql([errno(97), errno(38)]);
  });

  it('does the same on arm64', () => {
    const arm = (nr: number, arg0 = 0): number => answer('arm64', { audit: 0xc00000b7, nr, arg0 });
    expect(arm(64)).to.equal(ALLOW);
    expect(arm(198, 2)).to.equal(ALLOW);
    expect([arm(198, 40), arm(220, 0x10000000), arm(435), arm(40)]).to.eql([
      errno(97),
      errno(1),
      errno(38),
      errno(1),
    ]);
  });
});
