// A staleness bound of 1 while a version is published every second: what a slow trainer gets keeps the bound when it is
// sent and when it is handed over, and what does not is dropped by name. Real NATS, reconstructor and Python client.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor } from '../support/reconstructor.ts';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const VERSIONS = 6;
const GROUPS_A_VERSION = 10;

/** A line of test/support/python-staleness.py. */
interface Told {
  readonly batch_id: number;
  readonly sent_under: number;
  readonly current: number;
  readonly dropped: string;
  readonly nacked: string;
  readonly sessions: readonly { min: number; traces: number; dropped: string; reward: number }[];
}

describe('staleness', () => {
  let nats: TestNats;
  let mesh: Mesh;
  let reconstructor: TestReconstructor;
  before(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    reconstructor = await startReconstructor(nats.url);
  });
  after(async () => {
    await reconstructor[Symbol.asyncDispose]();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  /** Groups of a fresh session and one that is 0 to 3 versions old, while the versions go on. */
  const publish = async (): Promise<number[]> => {
    const ids: number[] = [];
    for (let version = 1; version <= VERSIONS; version++) {
      await mesh.publishVersion(version);
      const began = performance.now();
      for (let i = 0; i < GROUPS_A_VERSION; i++) {
        const older = Math.max(0, version - (i % 4));
        const sessions = [
          { reward: 1, min: i % 5 === 4 ? older : version },
          { reward: 0, min: older },
        ];
        ids.push(await mesh.announceGroup(`v${version}-${i}`, sessions));
      }
      await sleep(Math.max(0, 1_000 - (performance.now() - began)));
    }
    return ids;
  };

  it('keeps its bound at the trainer, and every drop has a name', async () => {
    const count = VERSIONS * GROUPS_A_VERSION;
    const script = join(root, 'test/support/python-staleness.py');
    const reading = run(
      join(root, '.venv/bin/python'),
      [script, reconstructor.url, 'trainer', String(count), '0.1'],
      { env: { ...process.env, PYTHONPATH: join(root, 'clients/python/src') }, timeout: 50_000 },
    );
    const [ids, { stdout }] = await Promise.all([publish(), reading]);
    const told = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Told);
    expect(told.map((one) => one.batch_id).sort((a, b) => a - b)).to.deep.equal(ids);
    const counts = { groups: 0, sessions: 0, atHandOver: 0 };
    for (const { batch_id, sent_under, current, dropped, nacked, sessions } of told) {
      for (const { min, traces, dropped: reason, reward } of sessions) {
        expect(reward, `head of a session of ${batch_id}`).to.be.oneOf([0, 1]);
        if (traces > 0) expect(current - min, `staleness in ${batch_id}, handed over`).to.be.at.most(1);
        else
          expect(reason || dropped, `name of a drop in ${batch_id}`).to.be.oneOf([
            'stale',
            'sessions_dropped',
          ]);
        if (reason === 'stale') {
          expect(sent_under - min, `staleness of what was dropped in ${batch_id}`).to.be.greaterThan(1);
          counts.sessions++;
        }
      }
      if (dropped !== '') counts.groups++;
      if (nacked === 'stale at hand-over') counts.atHandOver++;
    }
    const { consumers } = await reconstructor.client.listConsumers({});
    expect(consumers[0]).to.deep.include({
      pending: 0n,
      droppedGroups: { sessions_dropped: BigInt(counts.groups) },
      droppedSessions: { stale: BigInt(counts.sessions) },
    });
    expect(counts.groups, 'groups of which nothing was left').to.be.greaterThan(0);
    expect(counts.atHandOver, 'that became stale on their way').to.be.greaterThan(0);
  }).timeout(60_000);
});
