// The wall clock of a reconstructor that is set, or is away from the others': nothing waits for it, and nothing goes early.
import { expect } from 'chai';
import { createLogger } from '../../services/common/logger.ts';
import { Cursors } from '../../services/reconstructor/cursors/cursors.ts';
import { createStore } from '../../services/reconstructor/retention/store.ts';
import { sweepOld } from '../../services/reconstructor/retention/sweep.ts';
import { openTrajectoryLog } from '../../services/reconstructor/streams/trajectory-log.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor, Trainer } from '../support/reconstructor.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const { now } = Date;

describe('reconstructor: a wall clock that is set', () => {
  const { signal } = new AbortController();
  let nats: TestNats;
  let mesh: Mesh;
  let reconstructor: TestReconstructor;
  let trainer: Trainer;
  beforeEach(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    reconstructor = await startReconstructor(nats.url);
    trainer = new Trainer(reconstructor.client, 'trainer');
  });
  afterEach(async () => {
    Date.now = now;
    trainer.close();
    await reconstructor[Symbol.asyncDispose]();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  const sent = async (taskId: string) => {
    const id = await mesh.announce({ taskId, readyMs: BigInt(now()), sessions: [] });
    await trainer.batch();
    return { consumer: 'trainer', batchIds: [BigInt(id)] };
  };

  it('back by hours holds no batch back that was given back for less', async () => {
    const batch = await sent('again');
    const begun = performance.now();
    await reconstructor.client.nackTrajectories({ ...batch, delayMs: 600n });
    Date.now = () => now() - 9 * HOUR_MS;
    expect(await trainer.batch()).to.include({ batchId: batch.batchIds[0], nackCount: 1 });
    expect(performance.now() - begun, 'not before its delay').to.be.at.least(600);
  });

  it('forward by weeks takes nothing out of the store that is young by the clock of NATS', async () => {
    await reconstructor.client.ackTrajectories(await sent('young'));
    const { bus, blobs } = mesh;
    using cursors = await Cursors.open(bus);
    using trajectories = openTrajectoryLog(bus, blobs);
    const retention = { store: createStore(bus), keepMs: 7 * DAY_MS };
    const parts = { cursors, trajectories, retention, log: createLogger('test', 'silent') };
    Date.now = () => now() + 30 * DAY_MS;
    expect(await sweepOld(parts, 7 * DAY_MS, signal)).to.equal(0);
    expect(await sweepOld(parts, 0, signal)).to.equal(1);
  });
});
