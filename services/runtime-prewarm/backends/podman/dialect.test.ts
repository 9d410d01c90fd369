// What Podman 4.3 was seen to answer.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { containerSeccomp } from '../../domain/container-seccomp.ts';
import { podman } from './dialect.ts';

const dialect = podman('/nowhere', false);
const stateOf = (Running: boolean, ExitCode: number, Pid: number, CanRemove: boolean) => ({
  ...{ Running, ExitCode, Pid, CanRemove },
});

describe('podman as an engine', () => {
  it('tells a command that has ended from one that has not begun', () => {
    expect(dialect.hasEnded(stateOf(false, 0, 0, false))).to.equal(false);
    expect(dialect.hasEnded(stateOf(true, 0, 4_228, false))).to.equal(false);
    expect(dialect.hasEnded(stateOf(false, 3, 0, true))).to.equal(true);
  });

  it('tells a quick command from one that could not be started', () => {
    const said =
      'Error: runc: exec failed: unable to start container process: exec: "/nope": stat /nope: no such file or directory: OCI runtime attempted to invoke a command that was not found\n';
    expect(dialect.couldNotStart(127, said)).to.equal(true);
    expect(dialect.couldNotStart(0, said)).to.equal(false);
    expect(dialect.couldNotStart(127, 'sh: 1: nope: not found\n')).to.equal(false);
    expect(dialect.couldNotStart(125, '')).to.equal(false);
  });

  it('is refused without root, whatever limits it tells of', () => {
    const info = { OSType: 'linux', PidsLimit: true, MemoryLimit: true, SecurityOptions: null };
    const rootless = { ...info, BuildahVersion: '1.28.2', Rootless: true };
    expect(() => dialect.check(rootless)).to.throw('it is rootless');
    expect(() => dialect.check({ ...rootless, Rootless: false })).not.to.throw();
  });

  it('names images as they were named when they were made', () => {
    const names = ['docker.io/library/a:1', 'localhost/a:1', 'quay.example/b/a:1', 'a:1'];
    expect(names.map((name) => dialect.imageName(name))).to.eql(['a:1', 'a:1', 'quay.example/b/a:1', 'a:1']);
  });

  it('writes what containers are made with, and maps users where it is told to', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-dialect-'));
    try {
      const { seccomp, more } = podman(join(folder, 'podman'), true).config();
      expect(readFileSync(seccomp, 'utf8')).to.equal(containerSeccomp());
      const map = '0:200000:65536';
      expect(more).to.include({ UsernsMode: `auto:uidmapping=${map},gidmapping=${map}` });
      expect(podman(folder, false).config().more).to.include({ UsernsMode: 'host' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
