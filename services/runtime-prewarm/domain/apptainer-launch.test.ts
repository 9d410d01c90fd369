import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { apptainerLaunch, placeBeside, shellFailureExitCode } from './apptainer-launch.ts';

const FDS = { status: 3, args: 4, block: 5, seccomp: 6, unread: 7 };
const PROGRAM = { path: '/usr/bin/apptainer', seccomp: '{}', place: '/run/x/root', keepsRights: false };

const launch = (options: { cwd?: string; env?: Record<string, string>; readOnly?: [string, string][] }) =>
  JSON.parse(
    apptainerLaunch(
      PROGRAM,
      {
        root: '.',
        readOnly: [],
        readOnlyTry: [],
        devices: [],
        cwd: '/',
        env: {},
        idMap: 'outside',
        ...options,
      },
      FDS,
    ),
  ) as { argv: string[]; env: Record<string, string>; files: Record<string, string>; folders: string[] };

describe('apptainerLaunch', () => {
  it('tells apptainer nothing of the environment of the command, nor where its root lies', () => {
    const { argv, env } = launch({ env: { OPENAI_API_KEY: 'secret' } });
    expect(JSON.stringify([argv, env]))
      .to.not.contain('secret')
      .and.not.contain('"."');
    expect(argv).to.include('/run/x/root');
  });

  it('gives the script any value, and lets it say first that the command runs', () => {
    const hard = `a'b"c$HOME\`d\\e\nf`;
    const script = launch({ env: { HARD: hard }, cwd: '/tmp' }).files['4'] ?? '';
    const { stdout, output } = spawnSync(
      '/bin/sh',
      ['-c', script, 'sh', 'sh', '-c', 'printf %s "$HARD"; pwd'],
      {
        stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
        encoding: 'utf8',
      },
    );
    expect([stdout, output[3]]).to.eql([`${hard}/tmp\n`, '{"started": 1}\n']);
  });

  it('takes a missing folder for the command’s own failure', () => {
    const script = launch({ cwd: '/no/such' }).files['4'] ?? '';
    const stdio = ['ignore', 'ignore', 'ignore', 'ignore'] as const;
    expect(spawnSync('/bin/sh', ['-c', script, 'sh', 'true'], { stdio: [...stdio] }).status).to.equal(126);
  });

  it('tells a shell that is not there from a sandbox that failed', () => {
    const codeOf = (said: string) => shellFailureExitCode(`FATAL:   ${said}\n`);
    expect(codeOf('stat /bin/sh: no such file or directory')).to.equal(127);
    expect(codeOf('stat /bin/sh: not a directory')).to.equal(127);
    expect(codeOf('exec /bin/sh failed: fork/exec /bin/sh: no such file or directory')).to.equal(127);
    expect(codeOf('exec /bin/sh failed: fork/exec /bin/sh: exec format error')).to.equal(126);
    expect(codeOf('container creation failed: mount /proc->/proc error: no such file')).to.equal(undefined);
    expect(shellFailureExitCode('')).to.equal(undefined);
  });

  it('shows the root at no place that is needed, or holds what is', () => {
    const places = ['/mnt', '/media', '/srv'];
    expect(placeBeside(places, ['/var/lib/polar', '/mnt2'])).to.equal('/mnt');
    expect(placeBeside(places, ['/mnt/data', '/media'])).to.equal('/srv');
    expect(placeBeside(places, ['/mnt', '/media', '/srv/images'])).to.equal(undefined);
  });

  it('shows folders whatever their names hold, at places that it has made', () => {
    const { argv, folders } = launch({ readOnly: [['/a,b"c', '/opt/x']] });
    expect(argv).to.include('"type=bind","source=/a,b""c","destination=/opt/x","ro"');
    expect(folders).to.include('/opt/x');
  });
});
