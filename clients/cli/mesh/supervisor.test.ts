import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { type Child, startChild } from './child.ts';
import { Supervisor } from './supervisor.ts';

describe('a supervisor', () => {
  it('leaves nothing running that was being started again as it stopped', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-supervisor-'));
    const logFile = join(folder, 'log');
    const started: Child[] = [];
    const late = Promise.withResolvers<void>();
    let asked = 0;
    const start = async (): Promise<Child> => {
      if (++asked > 1) await late.promise;
      const child = startChild({
        command: 'sleep',
        args: ['600'],
        env: process.env,
        output: { file: logFile },
      });
      started.push(child);
      return child;
    };
    const supervisor = new Supervisor();
    try {
      await supervisor.add({ name: 'sleeper', layer: 'mesh', logFile, start });
      supervisor.settled();
      await started[0]?.stop();
      await eventually('it is started again', async () => asked === 2);
      await supervisor.stop();
      late.resolve();
      await eventually('the second one is there', async () => started.length === 2);
      let ended = false;
      void started[1]?.ended.then(() => {
        ended = true;
      });
      await eventually('the second one has ended', async () => ended);
      expect(supervisor.pids).to.not.include({ sleeper: started[1]?.pid });
    } finally {
      for (const child of started) await child.stop();
      rmSync(folder, { recursive: true });
    }
  });

  it('stops nodes first and the store last, each when the one before has ended', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-supervisor-'));
    const logFile = join(folder, 'log');
    const supervisor = new Supervisor();
    try {
      for (const layer of ['store', 'mesh', 'node'] as const) {
        const script = `trap 'sleep 0.1; echo ${layer}; exit' TERM; echo begun; while :; do sleep 0.01; done`;
        const args = ['-c', script];
        const start = () => startChild({ command: 'sh', args, env: process.env, output: { file: logFile } });
        await supervisor.add({ name: layer, layer, logFile, start });
      }
      const said = (): string[] => readFileSync(logFile, 'utf8').trim().split('\n');
      await eventually('all have begun', async () => said().length === 3);
      await supervisor.stop();
      expect(said().slice(3)).to.deep.equal(['node', 'mesh', 'store']);
    } finally {
      await supervisor.stop();
      rmSync(folder, { recursive: true });
    }
  });

  for (const [command, told] of [
    ['kill -KILL $$', 'SIGKILL'],
    ['exit 3', 'exit code 3'],
  ] as const) {
    it(`tells of ${told} as that`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'polar-test-supervisor-'));
      const file = join(folder, 'log');
      const supervisor = new Supervisor();
      try {
        const start = async (): Promise<Child> =>
          startChild({ command: 'sh', args: ['-c', command], env: process.env, output: { file } });
        await supervisor.add({ name: 'short', layer: 'mesh', logFile: file, start });
        const error = await supervisor.failed.catch((thrown) => thrown);
        expect(error.message).to.contain(`short ended (${told}) while it started`);
      } finally {
        await supervisor.stop();
        rmSync(folder, { recursive: true });
      }
    });
  }
});
