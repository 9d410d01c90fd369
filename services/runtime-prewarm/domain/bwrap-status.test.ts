import { expect } from 'chai';
import { readStatus, unstartedExitCode } from './bwrap-status.ts';

describe('bwrap status', () => {
  it('reads documents as they become complete', () => {
    const none = { childPid: undefined, started: false, exitCode: undefined };
    expect(readStatus('{ "child-pid": 1')).to.eql(none);
    const first = '{\n "child-pid": 123, "net-namespace": 4026532182\n}\n';
    expect(readStatus(first)).to.eql({ ...none, childPid: 123 });
    expect(readStatus(`${first}{ "exit-code": 0 }\n`)).to.eql({ ...none, childPid: 123, exitCode: 0 });
    expect(readStatus('{"child-pid": 5}{"started": 1}\n')).to.eql({ ...none, childPid: 5, started: true });
  });

  it('passes over what is no JSON', () => {
    expect(readStatus('{"child-pid": 5}{no JSON}{"started": 1}')).to.include({ childPid: 5, started: true });
  });

  it("tells a command's own failure to start from the sandbox's", () => {
    expect(unstartedExitCode('bwrap: execvp /nope: No such file or directory\n')).to.equal(127);
    expect(unstartedExitCode('bwrap: execvp /etc: Permission denied\n')).to.equal(126);
    expect(unstartedExitCode("bwrap: Can't chdir to /x: No such file or directory\n")).to.equal(126);
    expect(unstartedExitCode("bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n")).to.equal(
      undefined,
    );
    expect(unstartedExitCode('mount: wrong fs type\n')).to.equal(undefined);
    expect(unstartedExitCode('')).to.equal(undefined);
  });
});
