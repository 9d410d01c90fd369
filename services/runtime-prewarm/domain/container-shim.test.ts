import { expect } from 'chai';
import { containerIn, shimOf } from './container-shim.ts';

const ID = '3be4d728e9fb9be41fecf4beec8d2438013544ba08cc64da6467d13270f6ae32';

describe("a container's processes", () => {
  it('has a shim that names it', () => {
    const line = (program: string): string =>
      `${program}\0-namespace\0moby\0-id\0${ID}\0-address\0/run/containerd.sock\0`;
    expect(shimOf(line('/usr/bin/containerd-shim-runc-v2'))).to.equal(ID);
    expect(shimOf(line('/usr/bin/containerd'))).to.equal(undefined);
    expect(shimOf('/usr/bin/containerd-shim-runc-v2\0')).to.equal(undefined);
    expect(shimOf('')).to.equal(undefined);
  });

  it('lies in groups that are named after it, whoever made them', () => {
    expect(containerIn(`8:pids:/docker/${ID}\n7:cpu:/docker/${ID}\n0::/docker/${ID}\n`)).to.equal(ID);
    expect(containerIn(`0::/system.slice/docker-${ID}.scope\n`)).to.equal(ID);
    expect(containerIn(`0::/libpod_parent/libpod-${ID}\n`)).to.equal(ID);
    expect(containerIn(`0::/docker/${ID}/inner\n`)).to.equal(ID);
    expect(containerIn('0::/user.slice\n')).to.equal(undefined);
  });
});
