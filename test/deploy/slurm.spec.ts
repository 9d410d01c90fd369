// npm run test:slurm: deploy/slurm/mesh.sbatch in a Slurm cluster of two nodes, all on this machine. Not part of `npm test`: it
// takes two minutes, and Slurm's daemons want root.
import type { ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Ended, polar, ROOT, usersOf } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { startEngine } from '../support/mesh.ts';
import { unclaimedPorts } from '../support/nats.ts';
import { startSlurm, type TestSlurm } from '../support/slurm.ts';

const NODES = ['n1', 'n2'];
const READY_MS = 90_000;
const SESSIONS = 6;
const LOG_LINES = 40;
/** Long enough to be in the middle of when the job is stopped. */
const SLOW_AGENT = `sleep 6; curl -sS --fail -o /dev/null "$OPENAI_BASE_URL/chat/completions" \
-H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' \
-d '{"model": "any", "messages": [{"role": "user", "content": "hello"}]}'`;

const SLOW_TASK = {
  task_id: 'slow',
  instruction: 'Say hello.',
  num_samples: SESSIONS,
  timeout_seconds: 60,
  agent: { harness: 'shell', custom_shell: { command: SLOW_AGENT } },
  builder: { strategy: 'prefix_merging' },
  evaluator: { strategy: 'session_completed' },
};

interface Told {
  readonly sessions: { readonly state: string; readonly outcome: string; readonly attempt: number }[];
}

describe('the mesh of deploy/slurm', function () {
  this.timeout(300_000);
  let slurm: TestSlurm;
  let job: string;
  let state: string;
  let engineUrl: string;
  const engine = new Map<string, ChildProcess>();
  before(async () => {
    slurm = await startSlurm(NODES, { POLAR_HOME: ROOT });
    state = join(slurm.folder, 'mesh');
    const script = ['--script', join(ROOT, 'examples/calculator/script.yaml')];
    engineUrl = await startEngine(slurm.folder, { engineFlags: script }, engine);
    job = await submitMesh(engineUrl);
  });
  after(async () => {
    await slurm?.[Symbol.asyncDispose]();
    for (const child of engine.values()) child.kill();
  });

  /** Its folder goes with the cluster. */
  afterEach(async function () {
    if (this.currentTest?.state !== 'failed') return;
    for (const name of ['job.log', 'slurmctld.log']) {
      const lines = readFileSync(join(slurm.folder, name), 'utf8').trim().split('\n');
      console.error(`${name}:\n${lines.slice(-LOG_LINES).join('\n')}`);
    }
    console.error(await slurm.run('squeue'), await slurm.run('sinfo', '-N', '-l'));
  });

  async function submitMesh(url: string): Promise<string> {
    const [port] = await unclaimedPorts(1);
    const env = {
      POLAR_STATE: state,
      POLAR_SCRATCH: slurm.folder,
      POLAR_PORT: String(port),
      POLAR_RUNS: '1',
      POLAR_ENGINE_URLS: url,
    };
    const exported = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const answer = await slurm.run(
      'sbatch',
      '--parsable',
      `--nodes=${NODES.length}`,
      `--export=ALL,${exported.join(',')}`,
      `--output=${join(slurm.folder, 'job.log')}`,
      join(ROOT, 'deploy/slurm/mesh.sbatch'),
    );
    return answer.trim();
  }

  /** As its users call it: with the topology and the token that the job has written. */
  const call = async (...args: string[]): Promise<Ended> =>
    await polar([...args, '-c', join(state, 'topology.yaml')], {
      env: { POLAR_TOKEN: readFileSync(join(state, 'token'), 'utf8').trim() },
    });
  const told = async (taskId: string): Promise<Told['sessions']> => {
    const { code, stdout } = await call('status', taskId, '--json');
    return code === 0 ? (JSON.parse(stdout) as Told).sessions : [];
  };
  const bothNodes = (): Promise<void> =>
    eventually(
      'both nodes are there',
      async () => {
        const { code, stdout } = await call('status', '--json').catch(() => ({ code: 1, stdout: '' }));
        return code === 0 && NODES.every((node) => stdout.includes(`"${node}"`));
      },
      READY_MS,
    );

  it('runs the calculator example on both nodes', async () => {
    await bothNodes();
    const { code, stdout, stderr } = await call(
      'submit',
      join(ROOT, 'examples/calculator/task.yaml'),
      '--wait',
    );
    expect(code, stdout + stderr).to.equal(0);
    expect(await told('calculator')).to.have.length(4);
  });

  it('lets nobody in without its token', async () => {
    const { code, stderr } = await polar(['status', '-c', join(state, 'topology.yaml')]);
    expect(code).not.to.equal(0);
    expect(stderr).to.include('UNAUTHENTICATED');
  });

  for (const [how, taskId, stop] of [
    ['is warned and queued again', 'warned', () => slurm.run('scancel', '--batch', '--signal=TERM', job)],
    ['is killed and queued again', 'killed', () => slurm.run('scontrol', 'requeue', job)],
  ] as const) {
    it(`goes on where it was when the job ${how}, and loses no session`, async () => {
      const task = join(slurm.folder, `${taskId}.json`);
      writeFileSync(task, JSON.stringify({ ...SLOW_TASK, task_id: taskId }));
      const { code, stderr } = await call('submit', task);
      expect(code, stderr).to.equal(0);
      const isRunning = async (): Promise<boolean> =>
        (await told(taskId)).some(({ state: one }) => one.endsWith('RUNNING'));
      await eventually('some sessions run', isRunning);
      await stop();
      const isWaiting = async (): Promise<boolean> =>
        (await slurm.run('squeue', '-h', '-o', '%t')).includes('PD');
      await eventually('the job waits', isWaiting, READY_MS);
      expect(usersOf(state)).to.deep.equal([]);
      // Slurm lets it wait for two minutes; what begins within a second is taken for the one that was killed.
      await slurm.run('scontrol', 'update', `JobId=${job}`, 'StartTime=now+5');
      await bothNodes();
      const isOver = async (): Promise<boolean> => {
        const sessions = await told(taskId);
        return sessions.length === SESSIONS && sessions.every(({ state: one }) => one.endsWith('ENDED'));
      };
      await eventually('all sessions have ended', isOver, READY_MS);
      const sessions = await told(taskId);
      expect(sessions.map(({ outcome }) => outcome.replace(/^OUTCOME_/, ''))).to.deep.equal(
        Array(SESSIONS).fill('COMPLETED'),
      );
      expect(
        sessions.filter(({ attempt }) => attempt > 1),
        'cut by the stop',
      ).not.to.be.empty;
      expect(await told('calculator'), 'of the job before').to.have.length(4);
    });
  }

  for (const [how, args] of [
    ['is told to end', ['--batch', '--signal=INT']],
    ['is cancelled', []],
  ] as const) {
    it(`ends for good when it ${how}, and leaves nothing running`, async () => {
      if ((await slurm.run('squeue', '-h')).trim() === '') job = await submitMesh(engineUrl);
      await bothNodes();
      await slurm.run('scancel', ...args, job);
      const isOver = async (): Promise<boolean> => (await slurm.run('squeue', '-h')).trim() === '';
      await eventually('the job has ended', isOver, READY_MS);
      expect(usersOf(state)).to.deep.equal([]);
      expect(usersOf(join(slurm.folder, `polar-${job}`))).to.deep.equal([]);
    });
  }
});
