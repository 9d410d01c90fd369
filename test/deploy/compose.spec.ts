// npm run test:deploy: the mesh of deploy/docker-compose.yaml, built from deploy/Dockerfile and used from this machine by
// the command line and the Python client. Not part of `npm test`: making the images alone takes minutes.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { polar, ROOT } from '../support/cli.ts';
import { type ComposeMesh, startComposeMesh } from '../support/compose.ts';
import type { TestEngine } from '../support/container-engine.ts';
import { startDocker } from '../support/docker.ts';
import { eventually } from '../support/eventually.ts';

const run = promisify(execFile);
const NODES = ['node-1', 'node-2'];
const RESTART_MS = 120_000;

describe('the mesh of docker-compose.yaml', function () {
  this.timeout(600_000);
  let docker: TestEngine;
  let mesh: ComposeMesh;
  let rollout: Client<typeof RolloutService>;
  let isDown = false;
  before(async () => {
    docker = await startDocker();
    mesh = await startComposeMesh(docker);
    rollout = createServiceClient(RolloutService, mesh.env.POLAR_ROLLOUT_URL);
  });
  after(async () => {
    if (!isDown) await mesh?.down();
    await docker?.[Symbol.asyncDispose]();
  });

  const list = async (...args: string[]): Promise<string[]> =>
    (await docker.docker(...args)).split('\n').filter((line) => line !== '');

  async function expectSolved(taskId: string): Promise<void> {
    const { sessions } = await rollout.listSessions({ taskId });
    const outcomes = sessions.map(({ outcome, failure }: Session) => failure?.message ?? Outcome[outcome]);
    expect(outcomes).to.deep.equal(Array(4).fill('COMPLETED'));
    expect(sessions.map(({ reward }) => reward).sort()).to.deep.equal([0, 1, 1, 1]);
    expect([...new Set(sessions.map(({ nodeId }) => nodeId))].sort()).to.deep.equal(NODES);
  }

  async function kill(service: string): Promise<void> {
    const id = await mesh.container(service);
    process.kill(Number(await docker.docker('inspect', '--format', '{{.State.Pid}}', id)), 'SIGKILL');
    const state = '{{.RestartCount}} {{.State.Health.Status}}';
    const isBack = async (): Promise<boolean> =>
      /^[1-9]\d* healthy$/m.test(await docker.docker('inspect', '--format', state, id));
    await eventually(`${service} is back`, isBack, RESTART_MS);
  }

  it('has two nodes', async () => {
    const { nodes } = await rollout.listNodes({});
    expect(nodes.map(({ nodeId }) => nodeId).sort()).to.deep.equal(NODES);
  });

  it('runs the calculator example from the command line, on both nodes', async () => {
    const args = ['submit', join(ROOT, 'examples/calculator/task.yaml'), '--wait'];
    const { code, stdout, stderr } = await polar(args, { env: mesh.env });
    expect(code, stdout + stderr).to.equal(0);
    await expectSolved('calculator');
  });

  it('starts again what is killed', async () => {
    for (const service of ['nats', 'rollout', 'node-2']) await kill(service);
    await eventually('both nodes are there', async () => {
      const { nodes } = await rollout.listNodes({});
      return nodes.filter(({ nodeId }) => NODES.includes(nodeId)).length === NODES.length;
    });
    await expectSolved('calculator');
  });

  it('runs the calculator example from the Python client, on both nodes', async () => {
    const script = join(ROOT, 'examples/calculator/submit.py');
    const env = { ...process.env, ...mesh.env, PYTHONPATH: join(ROOT, 'clients/python/src') };
    const args = [script, '--task-id', 'calculator-python'];
    const { stdout } = await run(join(ROOT, '.venv/bin/python'), args, { env });
    expect(stdout.match(/: completed, reward 1\.0$/gm), stdout).to.have.length(3);
    await expectSolved('calculator-python');
  });

  it('leaves no container, volume or network behind', async () => {
    await mesh.down();
    isDown = true;
    expect(await list('ps', '--all', '--quiet')).to.deep.equal([]);
    expect(await list('volume', 'ls', '--quiet')).to.deep.equal([]);
    expect(await list('network', 'ls', '--quiet', '--filter', 'type=custom')).to.deep.equal([]);
  });
});
