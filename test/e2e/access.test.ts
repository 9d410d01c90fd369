// A mesh that asks for access tokens: each client with the scopes that it needs, the services among each other with theirs.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { type Ended, polar, ROOT, startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';

const run = promisify(execFile);

describe('a mesh with access tokens', function () {
  this.timeout(120_000);
  const opened = new AsyncDisposableStack();
  const tokens: Record<string, string> = {};
  let folder: string;
  let mesh: Mesh;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-access-'));
    opened.defer(() => rmSync(folder, { recursive: true }));
    const tokensFile = join(folder, 'tokens.txt');
    const scopes = { services: 'node,read', submitter: 'submit,read', trainer: 'consume', reader: 'read' };
    for (const [name, list] of Object.entries(scopes)) {
      const { code, stdout } = await polar(['token', name, '--scopes', list, '--file', tokensFile]);
      expect(code).to.equal(0);
      tokens[name] = stdout.trim();
    }
    mesh = opened.use(await startMesh({ access: { tokensFile, token: tokens['services'] ?? '' } }));
  });
  after(() => opened.disposeAsync());

  const as = (name: string): { POLAR_TOKEN: string } => ({ POLAR_TOKEN: tokens[name] ?? name });
  const call = (args: readonly string[], env: Record<string, string>): Promise<Ended> =>
    polar([...args, '--rollout-url', mesh.schedulerUrl], { cwd: folder, env });

  it('runs a task of who may submit, and gives its batch to who may consume', async () => {
    const file = join(folder, 'task.yaml');
    writeFileSync(file, stringify(TASK));
    for (const [name, reason] of [
      ['', 'UNAUTHENTICATED'],
      ['guess', 'UNAUTHENTICATED'],
      ['reader', 'SCOPE_MISSING'],
    ] as const) {
      const refused = await call(['submit', file], as(name));
      expect(refused.code, name).to.equal(1);
      expect(refused.stderr, name).to.match(new RegExp(`^polar: ${reason}: `));
    }
    const ended = await call(['submit', file, '--wait'], as('submitter'));
    expect(ended.code, ended.stderr).to.equal(0);
    expect(mesh.log('scheduler').match(/"caller":"\w+","method":"\w+"/g)).to.deep.equal([
      '"caller":"submitter","method":"SubmitTask"',
    ]);
    expect(await consume('trainer')).to.match(/completed, reward 1\.000/);
    expect(await consume('submitter')).to.contain('SCOPE_MISSING');
  });

  it('lets a reader see and nothing else', async () => {
    const shown = await call(['status', TASK.task_id], as('reader'));
    expect(shown.code, shown.stderr).to.equal(0);
    const refused = await call(['cancel', TASK.task_id], as('reader'));
    expect(refused.stderr).to.contain('the token of reader has no scope submit');
  });

  it('grades again for who may submit, whose token the node passes on', async () => {
    const refused = await call(['regrade', TASK.task_id, '-c', mesh.topologyFile], as('reader'));
    expect([refused.code, refused.stdout]).to.deep.equal([1, '']);
    expect(refused.stderr).to.contain('the token of reader has no scope submit, which EvaluateSession needs');
    const { code, stdout, stderr } = await call(
      ['regrade', TASK.task_id, '-c', mesh.topologyFile],
      as('submitter'),
    );
    expect(code, stderr).to.equal(0);
    expect(stdout).to.match(/ 1\.00 +1\.00/);
    await eventually('it is told of both services', () =>
      (['llm-proxy', 'evaluator'] as const).every((name) =>
        mesh.log(name).includes('"caller":"submitter","method":"EvaluateSession"'),
      ),
    );
  });

  it('makes no token where its name is taken or its file cannot be written, and says which', async () => {
    const tokensFile = join(folder, 'tokens.txt');
    const wrong = [
      ['services', tokensFile, 'NAME: services is there already'],
      ['other', join(folder, 'nowhere/tokens.txt'), '(file): ENOENT'],
      ['other', folder, '(file): EISDIR'],
    ] as const;
    for (const [name, file, fault] of wrong) {
      const { code, stdout, stderr } = await polar(['token', name, '--scopes', 'read', '--file', file]);
      expect([code, stdout], stderr).to.deep.equal([2, '']);
      expect(stderr).to.contain('INVALID_REQUEST').and.to.contain(fault);
    }
  });

  it('does not start a service that could not call the others', async () => {
    const env = { POLAR_TOPOLOGY: mesh.topologyFile, POLAR_TOKEN: tokens['reader'] ?? '' };
    const { code, stderr } = await polar(['serve', 'evaluator'], { cwd: folder, env });
    expect(code).to.not.equal(0);
    expect(stderr).to.match(/POLAR_TOKEN: must hold a token of .* with the scopes node,read/);
  });

  it('warns once where tokens come by a network without TLS', async () => {
    const file = join(folder, 'open.yaml');
    const access = { tokens_file: join(folder, 'tokens.txt') };
    // It looks for NATS when it has warned.
    const nats = { url: 'nats://127.0.0.1:9' };
    writeFileSync(file, stringify({ access, nats, reconstructor: { host: '0.0.0.0' } }));
    const { child, ended, stdout } = startPolar(['serve', 'reconstructor', '-c', file], {
      cwd: folder,
      env: as('services'),
    });
    try {
      await eventually('the warning', () => stdout().includes('without TLS'));
    } finally {
      child.kill('SIGTERM');
    }
    const { stdout: all } = await ended;
    expect(all.match(/without TLS/g)).to.have.length(1);
    expect(mesh.log('reconstructor')).to.contain('ready').and.not.to.contain('without TLS');
  });

  it('loses no session while the token of its services is not in the file', async () => {
    const tokensFile = join(folder, 'tokens.txt');
    const all = readFileSync(tokensFile, 'utf8');
    const session = async () => {
      const { stdout } = await call(['status', 'rotated', '--json'], as('submitter'));
      return JSON.parse(stdout || '{}').sessions?.[0] ?? {};
    };
    const file = join(folder, 'rotated.yaml');
    writeFileSync(file, stringify({ ...TASK, task_id: 'rotated', max_attempts: 10 }));
    try {
      writeFileSync(tokensFile, all.replace(/^services .*$/m, ''));
      // Until then it may still be known.
      await eventually('it is unknown', async () =>
        /the access token is unknown/.test((await call(['status'], as('services'))).stderr),
      );
      const submitted = await call(['submit', file], as('submitter'));
      expect(submitted.code, submitted.stderr).to.equal(0);
      // Gone again when the next attempt begins.
      let reason: string | undefined;
      await eventually('a service is refused', async () => {
        reason ??= (await session()).failure?.reason;
        return reason !== undefined;
      });
      expect(reason).to.equal('UNAUTHENTICATED');
    } finally {
      writeFileSync(tokensFile, all);
    }
    await eventually('it has ended', async () => (await session()).outcome !== 'OUTCOME_UNSPECIFIED');
    expect((await session()).outcome).to.equal('OUTCOME_COMPLETED');
  });

  async function consume(name: string): Promise<string> {
    const script = join(ROOT, 'examples/trainer/consume.py');
    const urls = ['--rollout-url', mesh.schedulerUrl, '--trajectory-url', mesh.reconstructorUrl];
    const env = { ...process.env, ...as(name), PYTHONPATH: join(ROOT, 'clients/python/src') };
    const args = [script, ...urls, '--max-batches', '1'];
    const python = join(ROOT, '.venv/bin/python');
    return await run(python, args, { env, timeout: 60_000 }).then(
      ({ stdout }) => stdout,
      (error) => String(error.stderr),
    );
  }
});

const TASK = {
  task_id: 'with-tokens',
  instruction: 'Say something.',
  num_samples: 1,
  timeout_seconds: 60,
  agent: {
    harness: 'shell',
    custom_shell: {
      command: `curl -sS --fail -o /dev/null "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d '{"model":"m","messages":[{"role":"user","content":"hi"}]}'`,
    },
  },
  builder: { strategy: 'prefix_merging' },
  evaluator: { strategy: 'session_completed' },
};
