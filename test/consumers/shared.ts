// Two processes that serve one shared consumer, of which one stops without a word and comes back, and one is killed.
import { expect } from 'chai';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { TRAJECTORY_READ_BYTES_MAX } from '../../services/common/limits.ts';
import { freePort, startNats } from '../support/nats.ts';
import { Mesh, Trainer } from '../support/reconstructor.ts';
import { type ReconstructorProcess, startReconstructorProcess } from './reconstructor-process.ts';

const GROUPS = 4;

/** Throws unless the other stream gets what a stream that is not seen any more held. Takes about a minute. */
export async function checkShared(): Promise<void> {
  await using nats = await startNats();
  const mesh = await Mesh.open(nats.url);
  try {
    await using stays = await startReconstructorProcess(await freePort(), nats.url);
    await using stops = await startReconstructorProcess(await freePort(), nats.url);
    for (let i = 0; i < GROUPS; i++) await mesh.announceTrace(`t${i}`, 8);
    const asleep = trainerOf(stops);
    const held = (await asleep.batches(GROUPS)).map((batch) => batch.batchId);
    const awake = trainerOf(stays);
    stops.signal('SIGSTOP');
    const again = await awake.batches(GROUPS);
    expect(again.map((batch) => batch.batchId)).to.deep.equal(held);
    for (const batch of again) expect(batch).to.include({ redelivered: true, deliveryCount: 2 });
    stops.signal('SIGCONT');
    expect(await asleep.error(), 'the one that slept').to.include({ reason: 'STREAM_LAPSED' });
    const third = trainerOf(stops);
    await third.message();
    stays.signal('SIGKILL');
    const last = await third.batches(GROUPS);
    expect(last.map((batch) => batch.batchId)).to.deep.equal(held);
    for (const batch of last) expect(batch).to.include({ redelivered: true, deliveryCount: 3 });
    third.close();
  } finally {
    await mesh.close();
  }
}

const trainerOf = ({ url }: ReconstructorProcess): Trainer =>
  new Trainer(
    createServiceClient(TrajectoryService, url, { readMaxBytes: TRAJECTORY_READ_BYTES_MAX }),
    'trainer',
    16,
    '',
    {
      shared: true,
    },
  );
