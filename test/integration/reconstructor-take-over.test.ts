// The reconstructor asks the scheduler that leads, whichever of two that is.
import { expect } from 'chai';
import { ExportKind } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { openBus } from '../../services/common/nats/bus.ts';
import { startFakeNode } from '../support/fake-node.ts';
import { startNats } from '../support/nats.ts';
import { startReconstructor } from '../support/reconstructor.ts';
import { groupOf, spawnScheduler, taskSpec } from '../support/scheduler.ts';

describe('reconstructor: two schedulers', () => {
  it('finds a session while one scheduler takes over from the other, and afterwards', async () => {
    await using nats = await startNats();
    await using node = await startFakeNode(nats.url);
    await using first = await spawnScheduler(nats.url);
    await using _ = await spawnScheduler(nats.url);
    const schedulerPort = Number(new URL(first.url).port);
    await using reconstructor = await startReconstructor(nats.url, { schedulerPort });
    const bus = await openBus({ url: nats.url, name: 'test' });
    const { sessionIds } = await first.client.submitTask({ spec: taskSpec('led') });
    await groupOf(bus, 'led');
    await bus.close();
    const exported = (sessionId: string) =>
      Array.fromAsync(reconstructor.client.exportSession({ sessionId, kind: ExportKind.CALLS }));
    await first.kill();
    // The node that ran it only said that there were model calls: it is the session that is found.
    expect(node.taken.map(({ kind }) => kind.case)).to.include('run');
    const reasonFor = (sessionId: string) => exported(sessionId).then(undefined, ({ reason }) => reason);
    expect(await reasonFor(sessionIds[0] ?? '')).to.equal('RECORDS_MISSING');
    expect(await reasonFor('s-unknown-0')).to.equal('NOT_FOUND');
  });
});
