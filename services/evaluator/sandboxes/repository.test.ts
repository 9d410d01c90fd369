// Git as a user who may not read and write everything, as in a container of a task.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import process from 'node:process';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { ExecResultSchema } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { ExecOutput } from '../../common/exec.ts';
import { applyPatch, extractChanges, leftOutOf, presentIn } from './repository.ts';
import type { Sandbox } from './sandbox.ts';

const NOBODY = 65_534;
const LIMIT_MS = 30_000;
const blobId = (text: string): string =>
  execFileSync('git', ['hash-object', '--stdin'], { input: text }).toString().trim();
/** Git knows it without having it. */
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';

describe('changes of a repository', () => {
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  let folder: string;
  let home: string;
  let path: string;
  const sandbox: Sandbox = {
    async exec([command = '', ...given]): Promise<ExecOutput> {
      const args = given.map((arg) => arg.replace(/^\/polar\/session/, home));
      const env = { PATH: path, HOME: home };
      const { stdout, stderr, status } = spawnSync(command, args, { ...user, cwd: '/', env });
      return { stdout, stderr, result: create(ExecResultSchema, { exitCode: status ?? -1 }) };
    },
    async putFile(target, content) {
      writeFileSync(join(home, basename(target)), content);
    },
  };
  const prepared = async (more: string): Promise<void> => {
    const script = `cd "$1" && git init -q && echo 0 > a && git add a &&
      git -c user.name=x -c user.email=x@example.org commit -qm start && ${more}`;
    const { stderr, result } = await sandbox.exec(['sh', '-c', script, 'sh', folder], LIMIT_MS);
    expect(result.exitCode, Buffer.from(stderr).toString()).to.equal(0);
  };
  const extracted = async (agent: string): Promise<ExecOutput> => {
    await prepared(agent);
    return await extractChanges(sandbox, folder, [], LIMIT_MS);
  };
  const applied = (patch: string, leftOut: string[] = []): ReturnType<typeof applyPatch> =>
    applyPatch(sandbox, folder, { bytes: Buffer.from(patch), leftOut }, LIMIT_MS);
  beforeEach(() => {
    path = process.env['PATH'] ?? '';
    folder = mkdtempSync(join(tmpdir(), 'polar-test-repository-'));
    home = mkdtempSync(join(tmpdir(), 'polar-test-home-'));
    mkdirSync(join(home, '.config'));
    for (const owned of [folder, home]) if (user.uid !== undefined) chownSync(owned, user.uid, user.gid);
  });
  afterEach(() => {
    chmodSync(home, 0o700);
    // Not only root is to be able to delete it.
    execFileSync('chmod', ['-R', 'u+rwX', folder]);
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

  it('tell of a pipe or a socket in the place of a file', async () => {
    const bind = 'import socket; socket.socket(socket.AF_UNIX).bind("b")';
    const changes = `echo 1 > c; rm a; mkfifo a; rm b; python3 -c '${bind}'`;
    const output = await extracted(
      `echo 0 > b; git add b; git -c user.name=x -c user.email=x@example.org commit -qm b; ${changes}`,
    );
    expect(output.result.exitCode, Buffer.from(output.stderr).toString()).to.equal(0);
    expect(Buffer.from(output.stdout).toString())
      .to.include('+++ b/c')
      .and.not.include('/a')
      .and.not.include('/b');
    expect(leftOutOf(output)).to.deep.equal(['a', 'b']);
  });

  it('are not read in part where git cannot write', async () => {
    const denied = await extracted('echo 1 > a; chmod -R a-w .git/objects');
    expect(denied.result.exitCode).to.not.equal(0);
    expect(Buffer.from(denied.stderr).toString()).to.include('insufficient permission');
  });

  it('are ignored files, too, that the agent has added all the same', async () => {
    const forced = 'echo lib/ > .gitignore; mkdir lib; echo 1 > lib/in; echo 1 > lib/kept; echo 1 > lib/not';
    const committed = 'git -c user.name=x -c user.email=x@example.org commit -qm forced';
    const output = await extracted(`${forced}; git add -f lib/in && ${committed} && git add -f lib/kept`);
    expect(output.result.exitCode).to.equal(0);
    const patch = Buffer.from(output.stdout).toString();
    expect(patch).to.include('+++ b/lib/kept').and.not.include('lib/not');
    const since = await extractChanges(sandbox, folder, [EMPTY_TREE], LIMIT_MS);
    expect(Buffer.from(since.stdout).toString()).to.include('+++ b/lib/in').and.not.include('lib/not');
  });

  it('are read without hooks of the repository', async () => {
    const hook = 'printf "#!/bin/sh\\ntouch \\"$PWD/hooked\\"\\n" > .git/hooks/post-index-change';
    const output = await extracted(`echo 1 > a; ${hook}; chmod +x .git/hooks/post-index-change`);
    expect(output.result.exitCode).to.equal(0);
    expect(existsSync(join(folder, 'hooked'))).to.equal(false);
  });

  it('that reach files to be left out by a link are not applied', async function () {
    if (spawnSync('patch', ['--version']).error !== undefined) this.skip();
    await prepared('mkdir tests && echo old > tests/t && ln -s tests link && echo x > tests/x');
    const hunk = '@@ -1 +1 @@\n-old\n+new\n';
    const patch = `--- a/link/t\n+++ b/link/t\n${hunk}`;
    const { appliedBy, output } = await applied(patch, ['tests/']);
    expect(appliedBy).to.equal(undefined);
    expect(Buffer.from(output.stderr).toString()).to.contain('exclude_patterns');
    // It is the link that counts: what only lies beside is applied.
    writeFileSync(join(folder, 'tests/t'), 'old\n');
    expect((await applied(patch, ['tests/x'])).appliedBy).to.equal('patch');
    expect(readFileSync(join(folder, 'tests/t'), 'utf8')).to.equal('new\n');
  });

  it("that reach git's own files by a link are not applied", async function () {
    if (spawnSync('patch', ['--version']).error !== undefined) this.skip();
    await prepared('ln -s .git g');
    const { appliedBy, output } = await applied('--- a/g/description\n+++ b/g/hooks/x\n@@ -0,0 +1 @@\n+x\n');
    expect(appliedBy).to.equal(undefined);
    expect(Buffer.from(output.stderr).toString()).to.contain('files of .git');
  });

  it('are compared with what is there, where they do not apply as they are', async () => {
    await prepared(`echo x > 'b c'; echo x > ü; chmod +x ü; ln -s a l; mkdir d`);
    const paths = ['a', 'b c', 'ü', 'l', 'd', 'none', '"q'];
    const present = (patch: string) => presentIn(sandbox, folder, Buffer.from(patch), paths, LIMIT_MS);
    const [zero, x, link] = ['0\n', 'x\n', 'a'].map((text) => blobId(text));
    expect([...(await present('--- a/none\n+++ b/none\n@@ -1 +1 @@\n-1\n+2\n'))]).to.deep.equal([
      ['a', `100644 ${zero}`],
      ['b c', `100644 ${x}`],
      ['ü', `100755 ${x}`],
      ['l', `120000 ${link}`],
      ['d', '040000 -'],
      ['none', ''],
    ]);
    expect([...(await present('--- a/a\n+++ b/a\n@@ -1 +1 @@\n-0\n+1\n'))]).to.deep.equal([]);
  });

  it('that apply only with fuzz leave nothing else behind', async function () {
    if (spawnSync('patch', ['--version']).error !== undefined) this.skip();
    await prepared('seq 9 > t && sed -i s/2/two/ t');
    const patch = '--- a/t\n+++ b/t\n@@ -2,6 +2,6 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n';
    expect((await applied(patch)).appliedBy).to.equal('patch');
    expect(readdirSync(folder)).to.have.members(['.git', 'a', 't']);
  });

  it('take with them what Python has compiled of the files before', async () => {
    await prepared(
      'for at in . m n; do mkdir -p $at/__pycache__; touch $at/__pycache__/x.pyc $at/x.py; done',
    );
    const hunk = '@@ -0,0 +1 @@\n+new\n';
    const { appliedBy } = await applied(`--- a/x.py\n+++ b/x.py\n${hunk}--- a/m/x.py\n+++ b/m/x.py\n${hunk}`);
    expect(appliedBy).to.equal('git');
    const kept = ['.', 'm', 'n'].filter((at) => existsSync(join(folder, at, '__pycache__/x.pyc')));
    expect(kept).to.deep.equal(['n']);
  });

  it('that are there already are not taken away', async function () {
    if (spawnSync('patch', ['--version']).error !== undefined) this.skip();
    await prepared('printf "a\\nb\\nc\\nnew\\n" > t && echo new > file');
    const there = '--- a/t\n+++ b/t\n@@ -1,3 +1,4 @@\n a\n b\n c\n+new\n';
    const { appliedBy, output } = await applied(there);
    expect(appliedBy).to.equal(undefined);
    expect(Buffer.from(output.stdout).toString()).to.contain('previously applied');
    expect(readFileSync(join(folder, 't'), 'utf8')).to.equal('a\nb\nc\nnew\n');
    expect((await applied('--- /dev/null\n+++ b/file\n@@ -0,0 +1 @@\n+new\n')).appliedBy).to.equal(undefined);
    expect(readFileSync(join(folder, 'file'), 'utf8')).to.equal('new\n');
  });

  it('are not applied where the fresh sandbox lacks what that takes: the task is told, by its name', async () => {
    const patch = '--- /dev/null\n+++ b/file\n@@ -0,0 +1 @@\n+new\n';
    const lacks = async (): Promise<string[]> => {
      const error = await applied(patch).catch((thrown) => thrown);
      return [error.reason, error.message];
    };
    symlinkSync('/bin/sh', join(home, 'sh'));
    path = home;
    const [without, programs] = await lacks();
    expect(without).to.equal('INVALID_TASK');
    expect(programs).to.contain('neither git nor patch');
    rmSync(folder, { recursive: true });
    const [nowhere, where] = await lacks();
    expect(nowhere).to.equal('INVALID_TASK');
    expect(where).to.contain(`no ${folder}`);
    mkdirSync(folder);
  });
});
