// Git as a user who may not read and write everything, as in a container of a task.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { ExecResultSchema } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { ExecOutput } from '../../common/exec.ts';
import { extractChanges, leftOutOf } from './repository.ts';
import type { Sandbox } from './sandbox.ts';

const NOBODY = 65_534;
const LIMIT_MS = 30_000;

describe('changes of a repository', () => {
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  let folder: string;
  let home: string;
  const sandbox: Sandbox = {
    async exec([command = '', ...args]): Promise<ExecOutput> {
      const env = { PATH: process.env['PATH'], HOME: home };
      const { stdout, stderr, status } = spawnSync(command, args, { ...user, cwd: '/', env });
      return { stdout, stderr, result: create(ExecResultSchema, { exitCode: status ?? -1 }) };
    },
    putFile: () => Promise.reject(new Error('nothing is put')),
  };
  const extracted = async (agent: string): Promise<ExecOutput> => {
    const script = `cd "$1" && git init -q && echo 0 > a && git add a &&
      git -c user.name=x -c user.email=x@example.org commit -qm start && ${agent}`;
    const { stderr, result } = await sandbox.exec(['sh', '-c', script, 'sh', folder], LIMIT_MS);
    expect(result.exitCode, Buffer.from(stderr).toString()).to.equal(0);
    return await extractChanges(sandbox, folder, [], LIMIT_MS);
  };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-repository-'));
    home = mkdtempSync(join(tmpdir(), 'polar-test-home-'));
    mkdirSync(join(home, '.config'));
    for (const owned of [folder, home]) if (user.uid !== undefined) chownSync(owned, user.uid, user.gid);
  });
  afterEach(() => {
    chmodSync(home, 0o700);
    rmSync(folder, { recursive: true });
    rmSync(home, { recursive: true });
  });

  it('tell what git cannot add and cannot read, and not what it warns of', async () => {
    const unread = 'echo 1 > file; mkdir dir; echo 1 > dir/in; chmod 0 file dir "$HOME"';
    const output = await extracted(`git init -q empty && echo 1 > a && ${unread}`);
    expect(output.result.exitCode).to.equal(0);
    expect(Buffer.from(output.stdout).toString()).to.include('+1\n').and.not.include('file');
    expect(Buffer.from(output.stderr).toString()).to.include('warning: unable to access');
    expect(leftOutOf(output)).to.deep.equal(['empty/', 'file', 'dir/']);
  });

  it('are not read in part where git cannot write', async () => {
    const denied = await extracted('echo 1 > a; chmod -R a-w .git/objects');
    expect(denied.result.exitCode).to.not.equal(0);
    expect(Buffer.from(denied.stderr).toString()).to.include('insufficient permission');
  });
});
