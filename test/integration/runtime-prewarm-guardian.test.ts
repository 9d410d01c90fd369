// Nothing outlives the manager: SIGKILL at any moment leaves no process, group, mount or folder.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import { programOf } from '../../tools/built.mjs';
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import { leftoversOfNode } from '../support/leftovers.ts';
import { isLong } from '../support/long.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  bwrapIsThere,
  eventually,
  managerIsReady,
  processesWith,
  spawnManager,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';

const NAP = sleepMark();
const MAIN = programOf(join(import.meta.dirname, '../../services/runtime-prewarm/main.ts'));
const ROUNDS = isLong ? 6 : 3;
const SPREAD_MS = 120;

describe('runtime-prewarm: guardian', function () {
  this.timeout(180_000);
  let nats: TestNats;
  let node: TestNode;
  const managers: ChildProcess[] = [];
  before(async () => {
    nats = await startNats();
    node = await startNode({ natsUrl: nats.url, path: pathWithApptainer, start: false });
  });
  after(async () => {
    for (const manager of managers) manager.kill('SIGKILL');
    await eventually('all is cleared', () => leftovers(node).length === 0);
    await node[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  it('clears everything after SIGKILL of the manager, at any moment', async () => {
    const isolating = [
      ...(bwrapIsThere ? ['bubblewrap'] : []),
      ...(withoutApptainer === undefined ? ['apptainer'] : []),
    ];
    const backends = [...isolating, 'process'];
    for (let round = 0; round < ROUNDS; round++) {
      const manager = await startManager(node, managers);
      const ids = await Promise.all(
        Array.from({ length: 6 }, (_, i) =>
          node.acquire({ spec: { backend: backends[i % backends.length]! } }),
        ),
      );
      const script = `setsid ${NAP} & (${NAP} &) ; trap "" TERM HUP; ${NAP}`;
      for (const id of ids) node.sh(id, script, { proxyAccess: true }).catch(() => {});
      const delayMs = (round * SPREAD_MS) / ROUNDS;
      await sleep(delayMs);
      manager.kill('SIGKILL');
      await once(manager, 'exit');
      await eventually(
        () => `round ${round}, killed after ${delayMs} ms: ${leftovers(node)}`,
        () => leftovers(node).length === 0,
      );
    }
  });

  it('clears what a manager that was killed while it probed its backends has left', async () => {
    for (const delayMs of [0, 40, 80, 120]) {
      const manager = spawnManager(node);
      managers.push(manager);
      await eventually('its guardian is there', () => processesWith(guardedBy(node)).length > 0);
      await sleep(delayMs);
      manager.kill('SIGKILL');
      await once(manager, 'exit');
      await eventually(
        () => `killed after ${delayMs} ms: ${leftovers(node)}`,
        () => leftovers(node).length === 0,
      );
    }
  });

  it('leaves nothing when the manager is asked to stop, with commands running', async () => {
    const manager = await startManager(node, managers);
    const id = await node.acquire({ spec: { backend: 'process' } });
    const running = node.sh(id, `setsid ${NAP} & ${NAP}`).catch((error) => error.reason);
    await eventually('it runs', () => processesWith(NAP).length >= 2);
    manager.kill('SIGTERM');
    const [code] = await once(manager, 'exit');
    expect(code).to.equal(0);
    expect(await running).to.equal('SHUTTING_DOWN');
    expect(leftovers(node)).to.eql([]);
  });

  it('refuses a second manager of the same data, and says what to do', async () => {
    const manager = await startManager(node, managers);
    const second = spawn(process.execPath, [MAIN], { env: node.env, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    second.stderr.on('data', (chunk) => {
      said += chunk;
    });
    const [code] = await once(second, 'exit');
    expect(code).to.equal(2);
    expect(said).to.match(/INVALID_CONFIG: another runtime-prewarm holds .*lock/);
    manager.kill('SIGKILL');
    await eventually('all is cleared', () => leftovers(node).length === 0);
  });

  it('has what a next manager needs, however late the guardian of the one before ends', async () => {
    const manager = await startManager(node, managers);
    const late = guardianOf(node);
    process.kill(late, 'SIGSTOP');
    manager.kill('SIGKILL');
    await once(manager, 'exit');
    const next = spawnManager(node);
    managers.push(next);
    await eventually('its guardian waits', () => processesWith(guardedBy(node)).length === 2);
    process.kill(late, 'SIGCONT');
    await managerIsReady(node);
    const id = await node.acquire({ spec: { backend: 'process' } });
    expect((await node.sh(id, 'exit 3')).exitCode).to.equal(3);
    next.kill('SIGKILL');
    await eventually('all is cleared', () => leftovers(node).length === 0);
  });

  it('ends when its guardian does', async () => {
    const manager = await startManager(node, managers);
    process.kill(guardianOf(node), 'SIGKILL');
    const [code] = await once(manager, 'exit');
    expect(code).to.equal(1);
    expect(processesWith(NAP)).to.eql([]);
  });

  it('clears at the next start what a manager and a guardian left that were killed together', async () => {
    const manager = await startManager(node, managers);
    const id = await node.acquire({ spec: { backend: 'process' } });
    const call = node.sh(id, `setsid ${NAP} & ${NAP}`).catch(() => {});
    await eventually('it runs', () => processesWith(NAP).length >= 2);
    process.kill(guardianOf(node), 'SIGKILL');
    manager.kill('SIGKILL');
    await once(manager, 'exit');
    await call;
    const next = await startManager(node, managers);
    expect(processesWith(NAP)).to.eql([]);
    next.kill('SIGTERM');
    await once(next, 'exit');
    expect(leftovers(node)).to.eql([]);
  });

  it('ends with its supervisor', async () => {
    const manager = spawn(process.execPath, [MAIN], {
      env: { ...node.env, POLAR_LIFELINE: 'stdin' },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    managers.push(manager);
    await managerIsReady(node);
    manager.stdin!.end();
    const [code] = await once(manager, 'exit');
    expect(code).to.equal(0);
    expect(leftovers(node)).to.eql([]);
  });
});

const guardedBy = ({ folder }: TestNode): string => `guardian.sh ${folder}`;

function guardianOf(node: TestNode): number {
  const [pid] = processesWith(guardedBy(node));
  if (pid === undefined) throw new Error('there is no guardian');
  return pid;
}

async function startManager(node: TestNode, managers: ChildProcess[]): Promise<ChildProcess> {
  const manager = spawnManager(node);
  managers.push(manager);
  await managerIsReady(node);
  return manager;
}

const leftovers = ({ folder }: TestNode): string[] =>
  leftoversOfNode(join(folder, 'data/nodes/node-1'), [NAP]);
