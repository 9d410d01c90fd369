// A Slurm cluster of the test's own: munged, slurmctld and a slurmd for each node, all on this machine and below one folder.
import { execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { eventually } from './eventually.ts';
import { freePort } from './nats.ts';

const execute = promisify(execFile);
const START_MS = 30_000;
const STOP_MS = 10_000;
const MUNGE_KEY_BYTES = 64;

export interface TestSlurm extends AsyncDisposable {
  readonly folder: string;
  /** Runs a command of Slurm's; its standard output. */
  run(command: string, ...args: string[]): Promise<string>;
}

/** Programs by their whole path: Debian's are where users' PATH does not lead. */
const sbin = (name: string): string => `/usr/sbin/${name}`;

/** Root only, as Slurm's daemons become who has submitted a job. */
export async function startSlurm(nodes: readonly string[], env: Record<string, string>): Promise<TestSlurm> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-slurm-'));
  // munged refuses a socket that not everybody can get to.
  chmodSync(folder, 0o755);
  const file = join(folder, 'slurm.conf');
  writeFileSync(file, await configuration(folder, nodes));
  writeFileSync(join(folder, 'munge.key'), crypto.getRandomValues(new Uint8Array(MUNGE_KEY_BYTES)), {
    mode: 0o400,
  });
  const given = { ...process.env, ...env, SLURM_CONF: file };
  const daemons = [
    ['munged', '--foreground', ...mungeFiles(folder)],
    ['slurmctld', '-D', '-f', file],
    ...nodes.map((node) => ['slurmd', '-D', '-f', file, '-N', node]),
  ];
  const started: ReturnType<typeof spawn>[] = [];
  const run = async (command: string, ...args: string[]): Promise<string> =>
    (await execute(command, args, { env: given })).stdout;
  const dispose = async (): Promise<void> => {
    await run('scancel', '--user', 'root').catch(() => {});
    for (const child of started.reverse()) await ended(child);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const [name = '', ...args] of daemons) {
      started.push(spawn(sbin(name), args, { env: given, stdio: 'ignore' }));
      if (name === 'munged')
        await eventually('munged answers', () => works(run('munge', '-n', '-S', socketOf(folder))));
    }
    const isIdle = async (): Promise<boolean> => {
      const states = (await run('sinfo', '-N', '-h', '-o', '%t').catch(() => '')).trim().split('\n');
      return states.length === nodes.length && states.every((state) => state === 'idle');
    };
    await eventually('all nodes of Slurm are idle', isIdle, START_MS);
  } catch (error) {
    await dispose();
    throw error;
  }
  return { folder, run, [Symbol.asyncDispose]: dispose };
}

const works = (done: Promise<unknown>): Promise<boolean> =>
  done.then(
    () => true,
    () => false,
  );

const socketOf = (folder: string): string => join(folder, 'munge.socket');

const mungeFiles = (folder: string): string[] => [
  `--key-file=${join(folder, 'munge.key')}`,
  `--socket=${socketOf(folder)}`,
  `--pid-file=${join(folder, 'munge.pid')}`,
  `--log-file=${join(folder, 'munge.log')}`,
  `--seed-file=${join(folder, 'munge.seed')}`,
];

/** Nodes are all this machine, on ports of their own. */
async function configuration(folder: string, nodes: readonly string[]): Promise<string> {
  const at = (name: string): string => join(folder, name);
  mkdirSync(at('state'));
  for (const node of nodes) mkdirSync(at(`spool-${node}`));
  const lines = [
    'ClusterName=test',
    'SlurmctldHost=localhost(127.0.0.1)',
    `SlurmctldPort=${await freePort()}`,
    'SlurmUser=root',
    'AuthType=auth/munge',
    `AuthInfo=socket=${socketOf(folder)}`,
    `StateSaveLocation=${at('state')}`,
    `SlurmdSpoolDir=${at('spool-%n')}`,
    `SlurmctldPidFile=${at('slurmctld.pid')}`,
    `SlurmdPidFile=${at('slurmd-%n.pid')}`,
    `SlurmctldLogFile=${at('slurmctld.log')}`,
    `SlurmdLogFile=${at('slurmd-%n.log')}`,
    'ProctrackType=proctrack/linuxproc',
    'TaskPlugin=task/none',
    'SelectType=select/cons_tres',
    'SelectTypeParameters=CR_Core',
    'MpiDefault=none',
    'SwitchType=switch/none',
    'ReturnToService=2',
  ];
  for (const node of nodes) {
    const port = await freePort();
    lines.push(`NodeName=${node} NodeHostname=localhost NodeAddr=127.0.0.1 Port=${port} CPUs=2`);
  }
  lines.push(`PartitionName=main Nodes=${nodes.join(',')} Default=YES MaxTime=INFINITE State=UP`);
  return `${lines.join('\n')}\n`;
}

async function ended(child: ReturnType<typeof spawn>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill();
  const killer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await exited;
  clearTimeout(killer);
}
