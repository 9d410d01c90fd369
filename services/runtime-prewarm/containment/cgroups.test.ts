import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, rmdirSync } from 'node:fs';
import process from 'node:process';
import { expect } from 'chai';
import { sleep } from '../../common/clock.ts';
import { cgroupContainment } from './cgroups.ts';
import { basesOf, findHierarchies } from './hierarchies.ts';

const limits = { memoryBytes: 256 << 20, cpus: 1 };

for (const ignoreV2 of [false, true]) {
  describe(`control groups, ${ignoreV2 ? 'with the freezer' : 'with cgroup.kill where it is'}`, () => {
    const base = `polar-test-${process.pid}-${ignoreV2}`;
    const hierarchies = findHierarchies(ignoreV2);
    const containment = cgroupContainment(base, hierarchies);
    after(() => {
      if (containment !== undefined) for (const folder of basesOf(hierarchies, base)) rmdirSync(folder);
      expect(globSync(`/sys/fs/cgroup/{,*/}${base}`)).to.eql([]);
    });
    if (containment === undefined) {
      it('says where groups cannot be made', () =>
        expect(cgroupContainment(base, hierarchies)).to.equal(undefined));
      return;
    }

    it('kills what fled into sessions of its own, and proves it', async () => {
      const cell = containment.open('fled', limits);
      const script = 'for i in 1 2 3 4 5; do setsid sleep 100 & done; wait';
      const [file = '', ...args] = cell.wrap(['sh', '-c', script], 3);
      const child = spawn(file, args, { stdio: 'ignore', detached: true });
      cell.attach(child, 3);
      const exited = once(child, 'exit');
      await sleep(200);
      cell.kill();
      await exited;
      expect(await cell.end()).to.equal(true);
      await cell.close();
      expect(globSync(`/sys/fs/cgroup/{,*/}${base}/fled`)).to.eql([]);
    });

    it('removes its groups also where this process stood still meanwhile', async () => {
      const endMs = 20;
      const cell = cgroupContainment(base, hierarchies, endMs)?.open('still', limits) ?? expect.fail();
      const [file = '', ...args] = cell.wrap(['sh', '-c', 'echo here; exec sleep 100'], 3);
      const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'ignore'] });
      await once(child.stdout, 'data');
      const closing = cell.close();
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * endMs);
      child.kill('SIGKILL');
      await closing;
      expect(globSync(`/sys/fs/cgroup/{,*/}${base}/still`)).to.eql([]);
    });

    it('fences launchers that come late', async () => {
      const cell = containment.open('late', limits);
      const [file = '', ...args] = cell.wrap(['true'], 3);
      await cell.close();
      const child = spawn(file, args, { stdio: 'ignore' });
      const [code] = await once(child, 'exit');
      expect(code).to.not.equal(0);
    });
  });
}

it('says that groups cannot be made where another mount lies over their tree, and looks for them no longer', () => {
  // In a process of its own: what this is about never came back.
  const script = `import { makeBases } from '${import.meta.resolve('./hierarchies.ts')}';
    console.log(makeBases({ v2: undefined, points: new Map(), roots: ['/proc/not-there/cpu'] }, 'polar-test'));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 20_000 });
  expect(String(stdout)).to.equal('false\n');
}).timeout(30_000);
