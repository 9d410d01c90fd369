// The commands that make a mesh of several machines: here both on this one, with a NATS server of the test's own.
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import type { RunningEngine } from '../../examples/scripted-engine/server.ts';
import { startTestEngine } from '../../examples/scripted-engine/testing.ts';
import { sleep } from '../../services/common/clock.ts';
import { LEASE_RENEW_MS } from '../../services/common/limits.ts';
import { polar, ROOT, type Running, startPolar, usersOf } from '../support/cli.ts';
import { freePort, startNats, type TestNats } from '../support/nats.ts';
import { nodesUp } from '../support/nodes-up.ts';

describe('polar serve_rollout and serve_gateway', function () {
  this.timeout(120_000);
  let folder: string;
  let topology: string;
  let nats: TestNats;
  let engine: RunningEngine;
  const running: Running[] = [];

  before(async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'polar-test-serve-')));
    [nats, engine] = await Promise.all([
      startNats(),
      startTestEngine({ script: readFileSync(join(ROOT, 'examples/calculator/script.yaml'), 'utf8') }),
    ]);
    topology = join(folder, 'topology.yaml');
    writeFileSync(topology, stringify(await topologyFor(nats.url, engine.url, folder)));
  });
  after(async () => {
    for (const { child } of running) child.kill('SIGKILL');
    await nats?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, maxRetries: 5 });
  });

  const serve = (...args: string[]): Running => {
    const one = startPolar([...args, '-c', topology]);
    running.push(one);
    return one;
  };

  it('make a mesh, and end with all that they started', async () => {
    const commands = [
      serve('serve_rollout'),
      serve('serve_gateway', '--node-id', 'a'),
      serve('serve_gateway', '--node-id', 'b'),
    ];
    await untilNodesAreUp(topology, 2);
    const task = join(ROOT, 'examples/calculator/task-shell.yaml');
    const { code, stdout, stderr } = await polar(['submit', task, '--wait', '-c', topology]);
    expect(code, stderr).to.equal(0);
    expect(stdout.match(/ COMPLETED /g)).to.have.length(4);
    const status = await polar(['status', 'calculator-shell', '--json', '-c', topology]);
    const { sessions } = JSON.parse(status.stdout) as { sessions: { nodeId: string }[] };
    expect(new Set(sessions.map(({ nodeId }) => nodeId))).to.deep.equal(new Set(['a', 'b']));
    for (const { child, ended } of commands) {
      child.kill('SIGTERM');
      expect((await ended).code).to.equal(0);
    }
    expect(usersOf(folder)).to.deep.equal([]);
  });

  it('end when one of their services does, with its failure', async () => {
    const env = { POLAR_CACHE_DIR: folder, NODE_COMPILE_CACHE: '' };
    const taken = startPolar(['serve', 'scheduler', '-c', topology], { env });
    running.push(taken);
    await untilNodesAreUp(topology, 0);
    const compiled = `NODE_COMPILE_CACHE=${join(folder, 'compiled')}`;
    expect(usersOf(compiled), 'it keeps what it compiles').to.have.length(1);
    const told =
      /^polar: INVALID_CONFIG: no port: listen EADDRINUSE: address already in use 127\.0\.0\.1:\d+\n$/;
    for (const command of [['serve_rollout'], ['serve', 'scheduler']]) {
      const { code, stdout, stderr } = await serve(...command).ended;
      expect(code).to.equal(2);
      expect(stderr).to.match(told);
      expect(stdout).to.not.contain('EADDRINUSE');
    }
    // The one that works stays: by now it would have seen that another one has taken its state over.
    await sleep(2 * LEASE_RENEW_MS);
    taken.child.kill('SIGTERM');
    expect((await taken.ended).code).to.equal(0);
  });

  it('say in one line which folder they cannot have', async () => {
    const file = join(folder, 'nowhere.yaml');
    writeFileSync(file, stringify({ data_dir: '/proc/nowhere' }));
    const { code, stdout, stderr } = await polar(['serve', 'harness-executor', '-c', file]);
    expect([code, stdout]).to.deep.equal([2, '']);
    expect(stderr).to.match(
      /^polar: INVALID_CONFIG: the topology has 1 fault\(s\):\n {2}data_dir: \/proc\/nowhere\/.* cannot be made: .*\n$/,
    );
  });
});

async function topologyFor(natsUrl: string, engineUrl: string, folder: string): Promise<object> {
  const host = '127.0.0.1';
  const node = async (id: string): Promise<object> => ({
    id,
    host,
    port: await freePort(),
    runtime_prewarm_port: await freePort(),
    harness_executor_port: await freePort(),
    evaluator_port: await freePort(),
    inference: { engine: 'sglang', base_url: engineUrl },
    max_run_workers: 2,
  });
  return {
    data_dir: folder,
    nats: { url: natsUrl },
    rollout: { host, port: await freePort() },
    reconstructor: { host, port: await freePort() },
    gateway: { nodes: [await node('a'), await node('b')] },
  };
}

async function untilNodesAreUp(topology: string, count: number): Promise<void> {
  await nodesUp(topology, count);
  const { code, stdout, stderr } = await polar(['status', '-c', topology]);
  expect(code, stderr).to.equal(0);
  expect(stdout.match(/ up /g) ?? [], stdout + stderr).to.have.length.at.least(count);
}
