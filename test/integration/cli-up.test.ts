// `polar up`, as `npm start` runs it: the example, and what is left after each way of ending it.
import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { claimPort } from '../../clients/cli/mesh/ports.ts';
import { sleep } from '../../services/common/clock.ts';
import { readTopology } from '../../services/common/config/topology.ts';
import { mountsBelow, polar, ROOT, type Running, startPolar, usersOf } from '../support/cli.ts';
import { itLong } from '../support/long.ts';
import { nodesUp } from '../support/nodes-up.ts';

const GONE_MS = 40_000;
const READY_MS = 60_000;

/** Of a machine whose way out is a proxy, which does not lead back to it. */
const BEHIND_A_PROXY = {
  ...{ http_proxy: 'http://127.0.0.1:1', https_proxy: 'http://127.0.0.1:1' },
  ...{ no_proxy: '', NO_PROXY: '', NODE_USE_ENV_PROXY: '1' },
};

/** What a node keeps: no sandbox. */
const NODE_FILES = [
  'data-id',
  'docker-images',
  'harness-artifacts',
  'harness-logs',
  'layers',
  'podman-images',
  'runtime-prewarm.lock',
  'seccomp.bpf',
  'unpacked',
  'unpacked-used',
];

interface Ready {
  readonly addresses: Readonly<Record<string, string>>;
  readonly pids: Readonly<Record<string, number>>;
  readonly topology: string;
}

describe('polar up', function () {
  this.timeout(180_000);
  let folder: string;
  const running: Running[] = [];
  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'polar-test-up-')));
    mkdirSync(join(folder, 'tmp'));
  });
  afterEach(async () => {
    for (const { child, ended } of running.splice(0)) {
      child.kill('SIGTERM');
      await ended;
    }
    await expectNothingLeft(folder);
    rmSync(folder, { recursive: true });
  });

  const startWith = (more: Readonly<Record<string, string>>, ...args: string[]): Running => {
    // Of a shell in which single schedulers were started.
    const env = { POLAR_ROLLOUT_PORT: '1', TMPDIR: join(folder, 'tmp'), ...more };
    const one = startPolar(['up', '--data-dir', folder, '--json', ...args], { env });
    running.push(one);
    return one;
  };
  const start = (...args: string[]): Running => startWith({}, ...args);

  it('runs the example once, prints what came of each session, and ends', async () => {
    const { code, stdout, stderr } = await polar(['up', '--example', '--once', '--data-dir', folder]);
    expect(code, stderr).to.equal(0);
    expect(stdout).to.contain('scripted').and.contain('--engine-url');
    const rows = stdout.split('\n').filter((line) => line.includes(' COMPLETED '));
    expect(rows).to.have.length(4);
    for (const title of ['harness', 'status', 'reward', 'calls', 'traces', 'trained', 'masked', 'run s']) {
      expect(stdout).to.contain(title);
    }
    for (const row of rows) expect(row).to.match(/ pi +COMPLETED +[01]\.00 +\d+ +\d+ +\d+ +\d+ /);
    expect(stderr).to.contain(' RUNNING').and.contain(' FINISHING');
  });

  it('ends with 1 when a session has no trajectory', async () => {
    const task = join(folder, 'task.yaml');
    const agent = { harness: 'shell', custom_shell: { command: 'true' } };
    const runtime = { prepare: [{ command: 'echo no way; exit 3' }] };
    writeFileSync(task, JSON.stringify({ task_id: 'broken', instruction: 'x', agent, runtime }));
    const { code, stdout } = await polar(['up', '--task', task, '--once', '--data-dir', folder]);
    expect(stdout).to.contain('PREPARE_FAILED').and.contain('no way');
    expect(code).to.equal(1);
  });

  for (const [what, script, sessions] of [
    ['there is no bwrap', undefined, 4],
    ['user namespaces are refused', 'echo bwrap: setting up uid map: Permission denied >&2; exit 1', 1],
  ] as const) {
    const run = sessions === 1 ? itLong : it;
    run(`warns loudly, with the cause, and takes runtime process where ${what}`, async () => {
      const bin = mkdtempSync(join(tmpdir(), 'polar-test-path-'));
      // Root's node runs it as another user.
      chmodSync(bin, 0o755);
      for (const name of readdirSync('/usr/bin')) {
        if (name !== 'bwrap') symlinkSync(`/usr/bin/${name}`, join(bin, name));
      }
      if (script !== undefined) writeFileSync(join(bin, 'bwrap'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      try {
        const task = join(folder, 'task.json');
        const agent = { harness: 'shell', custom_shell: { command: 'true' } };
        writeFileSync(task, JSON.stringify({ task_id: 'small', instruction: 'x', agent }));
        const work = sessions === 1 ? ['--task', task] : ['--example'];
        const args = ['up', ...work, '--once', '--data-dir', folder];
        const { code, stdout, stderr } = await polar(args, { env: { PATH: bin } });
        expect(stderr).to.contain('WARNING').and.contain('isolates NOTHING');
        expect(stderr).to.contain(script === undefined ? 'install bubblewrap' : 'setting up uid map');
        expect(stdout.match(/ COMPLETED /g), stderr).to.have.length(sessions);
        expect(code).to.equal(0);
      } finally {
        rmSync(bin, { recursive: true });
      }
    });
  }

  it('serves submit, status, watch, export and cancel, and starts again what is killed', async () => {
    const mesh = start();
    const { topology, pids } = await ready(mesh);
    const config = ['-c', topology];
    const task = join(ROOT, 'examples/calculator/task-shell.yaml');
    const submitted = await polar(['submit', task, '--wait', ...config]);
    expect(submitted.code, submitted.stderr).to.equal(0);
    const session = /^session (\S+)/m.exec(submitted.stdout)?.[1] ?? '';

    const harbor = await polar(['submit', join(ROOT, 'examples/harbor/task.yaml'), '--wait', ...config]);
    expect(harbor.stdout.match(/ COMPLETED +1\.00 /g), harbor.stderr).to.have.length(2);

    const [calls, traces] = [join(folder, 'calls.jsonl'), join(folder, 'traces.jsonl')];
    expect((await polar(['export', session, '--calls', '-o', calls, ...config])).code).to.equal(0);
    expect((await polar(['export', session, '--traces', '-o', traces, ...config])).code).to.equal(0);
    const laws = execFileSync('python3', [join(ROOT, 'test/vectors/laws.py'), calls, traces], {
      encoding: 'utf8',
    });
    expect(laws).to.contain('all laws hold');
    const piped = await polar(['export', session, '--calls', ...config]);
    expect(piped.stdout).to.equal(readFileSync(calls, 'utf8'));

    const status = await polar(['status', ...config]);
    expect(status.stdout)
      .to.match(/^local +up .*bubblewrap/m)
      .and.match(/^calculator-shell .* 4 completed/m);
    const one = JSON.parse((await polar(['status', session, '--json', ...config])).stdout);
    expect(one.sessions[0]).to.include({ sessionId: session, outcome: 'OUTCOME_COMPLETED' });
    const watched = await polar(['watch', 'calculator-shell', '--json', ...config]);
    expect(watched.stdout.trim().split('\n')).to.have.length(4);
    const again = await polar(['submit', task, '--json', ...config]);
    expect(JSON.parse(again.stdout).session_ids, 'an equal replay gets the first answer').to.include(session);
    expect((await polar(['cancel', 'calculator-shell', ...config])).code).to.equal(0);
    expect((await polar(['cancel', 'no-such-task', ...config])).code).to.equal(1);

    for (const name of ['scheduler', 'nats-server', 'engine']) process.kill(pids[name] ?? 0, 'SIGKILL');
    await until(() => mesh.stderr().includes('scheduler ended'), READY_MS, mesh.stderr);
    await nodesUp(topology, 1);
    expect((await polar(['status', ...config])).code).to.equal(0);
    const after = await polar(['submit', task, '--task-id', 'after', '--wait', ...config]);
    expect(after.code, after.stderr + mesh.stderr()).to.equal(0);
    expect(mesh.stderr()).to.contain('scheduler ended').and.contain('nats-server ended');
  });

  itLong(
    'takes other ports where its own are taken, or are those of one that starts with it, and says so; commands in its folder find it there',
    async () => {
      const blocker = await block(8080);
      try {
        const mesh = startPolar(['up', '--json'], { cwd: folder });
        running.push(mesh);
        const another = start('--data-dir', join(folder, 'another'));
        const [{ addresses, topology }, others] = await Promise.all([ready(mesh), ready(another)]);
        const taken = [addresses, others.addresses].flatMap((those) => Object.values(those));
        expect(new Set(taken).size, 'no port of a mesh that starts in the same moment').to.equal(
          taken.length,
        );
        const rollout = addresses['tasks (RolloutService)'];
        expect(rollout).to.not.equal('http://127.0.0.1:8080');
        expect(readTopology(topology).rollout.public_url).to.equal(rollout);

        const task = join(folder, 'task.json');
        const agent = { harness: 'shell', custom_shell: { command: 'echo was here' } };
        writeFileSync(task, JSON.stringify({ task_id: 'here', instruction: 'x', agent }));
        const submitted = await polar(['submit', task, '--wait'], { cwd: folder });
        expect(submitted.code, submitted.stderr).to.equal(0);
        const session = /^session (\S+)/m.exec(submitted.stdout)?.[1] ?? '';
        const logs = await polar(['logs', session], { cwd: folder });
        expect(logs.stdout, logs.stderr).to.equal('was here\n');
        const told = await polar(['status', '--rollout-url', 'http://127.0.0.1:1'], { cwd: folder });
        expect(told.stderr).to.contain('nobody answers at http://127.0.0.1:1 ');

        mesh.child.kill('SIGINT');
        expect((await mesh.ended).code).to.equal(0);
        expect(mesh.stderr()).to.contain('8080 is taken: scheduler listens on ');
      } finally {
        blocker.close();
      }
    },
  );

  it('tells with its reason what a service misses that ends while it starts', async () => {
    const { code, stderr } = await polar(['up', '--data-dir', folder], { env: { POLAR_LOG_LEVEL: 'loud' } });
    expect(stderr).to.match(
      /^polar: INVALID_CONFIG: [a-z-]+ ended \(exit code 2\) while it started: the environment has 1 fault/m,
    );
    expect(stderr).to.contain('POLAR_LOG_LEVEL: must be one of ');
    expect(code).to.equal(2);
  });

  /** It runs the example: the task, and one of its sessions whose harness is at work. */
  async function inRun(mesh: Running): Promise<{ task: string; session: string }> {
    await ready(mesh);
    await until(() => mesh.stderr().includes(' RUNNING'), READY_MS, mesh.stderr);
    const [, session = ''] = /(s-[0-9a-f]+)-\d+ +RUNNING/.exec(mesh.stderr()) ?? [];
    await until(
      () => usersOf(session).length > 0,
      READY_MS,
      () => 'no harness was seen',
    );
    return { session, task: /^task (\S+):/m.exec(mesh.stderr())?.[1] ?? '' };
  }

  it('leaves nothing after SIGTERM in the middle of a run', async () => {
    const mesh = start('--example');
    const { session } = await inRun(mesh);
    mesh.child.kill('SIGTERM');
    expect((await mesh.ended).code).to.equal(0);
    expect(usersOf(folder), 'it ends after its children').to.deep.equal([]);
    await expectNothingLeft(folder, session);
    expect(NODE_FILES).to.include.members(readdirSync(join(folder, 'nodes/local')));
  });

  it('keeps others off its folder; killed in the middle of a run, leaves nothing, and the next goes on with it', async () => {
    const first = start('--example');
    const { session, task } = await inRun(first);
    const second = await start().ended;
    expect(second.code).to.equal(2);
    expect(second.stderr).to.contain(`${folder} already`).and.contain(String(first.child.pid));
    first.child.kill('SIGKILL');
    await first.ended;
    await expectNothingLeft(folder, session);
    expect(NODE_FILES).to.include.members(readdirSync(join(folder, 'nodes/local')));
    const { topology } = await ready(start());
    const watched = await polar(['watch', task, '-c', topology]);
    expect(watched.code, watched.stderr).to.equal(0);
  });

  itLong('ends with its parent on an older Node.js, even when that is killed', async function () {
    const older = ['/usr/bin/node', '/usr/local/bin/node'].find(
      (node) => existsSync(node) && /^v2[0-3]/.test(execFileSync(node, ['--version'], { encoding: 'utf8' })),
    );
    if (older === undefined) return this.skip();
    const mesh = startPolar(['up', '--data-dir', folder, '--json'], { node: older });
    running.push(mesh);
    await ready(mesh);
    mesh.child.kill('SIGKILL');
    await expectNothingLeft(folder);
  });

  itLong(
    'is reached directly where Node.js is told to use a proxy; its log can be emptied under its writer',
    async () => {
      mkdirSync(join(folder, 'logs'), { recursive: true });
      writeFileSync(join(folder, 'logs/scheduler.log'), Buffer.alloc(33 * 1024 * 1024, 'x'));
      const mesh = startWith(BEHIND_A_PROXY);
      const { topology } = await ready(mesh);
      // The node's first heartbeat comes behind it.
      await nodesUp(topology, 1);
      const status = await polar(['status', '-c', topology], { env: BEHIND_A_PROXY });
      expect(status.stdout).to.match(/^local +up /m);
      expect(readFileSync(join(folder, 'logs/scheduler.log.1')).byteLength).to.equal(33 * 1024 * 1024);
      const written = (): string => readFileSync(join(folder, 'logs/scheduler.log'), 'utf8');
      await until(() => written().includes('"msg":"ready"'), READY_MS, written);
      expect(written()).to.match(/^\{/);
      mesh.child.kill('SIGTERM');
      expect((await mesh.ended).code).to.equal(0);
    },
  );
});

/** What `--json` prints when all is ready. */
async function ready(mesh: Running): Promise<Ready> {
  await until(() => mesh.stdout().includes('\n') || ended(mesh.child), READY_MS, mesh.stderr);
  const [line = ''] = mesh.stdout().split('\n');
  if (line === '') throw new Error(`the mesh ended: ${mesh.stderr()}`);
  return JSON.parse(line) as Ready;
}

const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

async function until(
  done: () => boolean | Promise<boolean>,
  limitMs: number,
  about: () => string,
): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await done())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${about()}`);
    await sleep(20);
  }
}

/** No process, open file, mount or temporary file of a folder, and no process of a task's sessions, within GONE_MS. */
async function expectNothingLeft(folder: string, session = folder): Promise<void> {
  const temporary = (): string[] => readdirSync(join(folder, 'tmp'));
  const left = (): string[] => [
    ...[...usersOf(folder), ...usersOf(session)],
    ...[...mountsBelow(folder), ...temporary()],
  ];
  await until(
    () => left().length === 0,
    GONE_MS,
    () => left().join('\n'),
  );
}

/** Listen on a port as soon as no mesh of this machine has it. */
async function block(port: number): Promise<Server> {
  await until(
    () => claimPort(port, '127.0.0.1'),
    READY_MS,
    () => `port ${port} stays taken`,
  );
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
