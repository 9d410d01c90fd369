// The reconstructor as a process: killed in the middle, asked to stop, left by its supervisor.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { programOf } from '../../tools/built.mjs';
import { seeded } from '../support/laws.ts';
import { freePort, startNats, type TestNats } from '../support/nats.ts';
import { Mesh, Trainer } from '../support/reconstructor.ts';
import { recordsOf } from '../support/records.ts';
import { madeUpSession } from '../support/sessions.ts';

const main = programOf(join(import.meta.dirname, '../../services/reconstructor/main.ts'));

describe('reconstructor: process', () => {
  let nats: TestNats;
  let mesh: Mesh;
  let folder: string;
  let port: number;
  const children = new Set<ChildProcess>();
  beforeEach(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    folder = mkdtempSync(join(tmpdir(), 'polar-test-reconstructor-'));
    port = await freePort();
    writeFileSync(join(folder, 'topology.yaml'), `reconstructor: { host: 127.0.0.1, port: ${port} }\n`);
  });
  afterEach(async () => {
    for (const child of children) await end(child, 'SIGKILL');
    await mesh.close();
    await nats[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const start = async (): Promise<ChildProcess> => {
    const env = {
      ...process.env,
      POLAR_TOPOLOGY: join(folder, 'topology.yaml'),
      POLAR_NATS_URL: nats.url,
      POLAR_LOG_LEVEL: 'silent',
      POLAR_LIFELINE: 'stdin',
    };
    const child = spawn(process.execPath, [main], { env, stdio: ['pipe', 'inherit', 'inherit'] });
    children.add(child);
    for (let i = 0; i < 1_600 && child.exitCode === null; i++) {
      const ready = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
      if (ready?.ok === true) return child;
      await sleep(25);
    }
    throw new Error('the reconstructor did not get ready');
  };
  const end = async (child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.kill(signal);
      await exited;
    }
    children.delete(child);
    return child.exitCode;
  };
  const client = () => createServiceClient(TrajectoryService, `http://127.0.0.1:${port}`);

  it('killed in the middle of builds and streams, repeats what was not finished and nothing else', async () => {
    const SESSIONS = 30;
    const groups: number[] = [];
    for (let i = 0; i < 8; i++) groups.push(await mesh.announceTrace(`t${i}`, 100));
    const first = await start();
    const trainer = new Trainer(client(), 'trainer', 100);
    const batches = await trainer.batches(8);
    await client().ackTrajectories({
      consumer: 'trainer',
      batchIds: batches.slice(0, 5).map(({ batchId }) => batchId),
    });
    for (let i = 0; i < SESSIONS; i++) {
      const records = recordsOf(madeUpSession(seeded(i), 15, 20));
      const range = await mesh.record(`s${i}`, 1, records);
      await mesh.askForBuild(`s${i}`, 1, 'prefix_merging', range as never);
      if (i === SESSIONS / 2) await end(first, 'SIGKILL');
    }
    await trainer.error();
    await start();
    for (let i = 0; i < SESSIONS; i++) expect((await mesh.fact(`s${i}`)).kind.case).to.equal('built');
    const facts = await mesh.bus.jsm.streams.info(STREAMS.facts.name);
    expect(facts.state.messages).to.equal(SESSIONS);
    const again = new Trainer(client(), 'trainer', 100);
    const rest = await again.batches(3);
    expect(rest.map(({ batchId }) => Number(batchId))).to.deep.equal(groups.slice(5));
    expect(rest.every(({ redelivered }) => redelivered)).to.equal(true);
    again.close();
  }).timeout(120_000);

  it('ends when asked to, and tells its open streams', async () => {
    const child = await start();
    const trainer = new Trainer(client(), 'trainer');
    await trainer.message();
    const [error, code] = await Promise.all([trainer.error(), end(child, 'SIGTERM')]);
    expect(error).to.include({ reason: 'SHUTTING_DOWN' });
    expect(code).to.equal(0);
  });

  it('ends with its supervisor', async () => {
    const child = await start();
    const exited = once(child, 'exit');
    child.stdin?.end();
    await exited;
    expect(child.exitCode).to.equal(0);
  });
});
