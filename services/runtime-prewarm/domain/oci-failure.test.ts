import { expect } from 'chai';
import { unstartedExitCode } from './oci-failure.ts';

const OCI = 'OCI runtime exec failed: exec failed: unable to start container process: ';

describe('a command that an OCI runtime could not start', () => {
  it('has the exit code that a shell would tell', () => {
    for (const said of [
      'exec: "nope": executable file not found in $PATH: unknown',
      'exec: "/nope": stat /nope: no such file or directory: unknown',
    ]) {
      expect(unstartedExitCode(OCI + said), said).to.equal(127);
    }
    for (const said of [
      'exec: "/etc/passwd": permission denied: unknown',
      'exec: "/tmp": is a directory: unknown',
      'exec: "/etc/passwd/x": stat /etc/passwd/x: not a directory: unknown: Are you trying to mount a directory onto a file',
      'exec: "/tmp/l": stat /tmp/l: too many levels of symbolic links: unknown',
      'exec: "/xx": stat /xx: file name too long: unknown',
      'exec /tmp/x: exec format error: unknown',
      'exec /bin/sh: argument list too long: unknown',
      'chdir to cwd ("/nope") set in config.json failed: no such file or directory: unknown',
    ]) {
      expect(unstartedExitCode(OCI + said), said).to.equal(126);
    }
  });

  it('has none where the sandbox failed, not the command', () => {
    expect(unstartedExitCode(`${OCI}error executing setns process: exit status 1: unknown`)).to.equal(
      undefined,
    );
    expect(unstartedExitCode('')).to.equal(undefined);
  });
});
