// NATS comes back without its store, as with a volume that is not mounted: that is said, and with the store all goes on.
import { renameSync, rmSync } from 'node:fs';
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import type { PolarError } from '../../services/common/errors.ts';
import { openBus } from '../../services/common/nats/bus.ts';
import { Capabilities } from '../../services/llm-proxy/consumers/capabilities.ts';
import { eventually } from '../support/eventually.ts';
import { loggedLines } from '../support/logged-lines.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { startScheduler, taskSpec } from '../support/scheduler.ts';

/** On its port, with nothing stored. */
async function restartEmpty(nats: TestNats): Promise<void> {
  await nats.kill();
  renameSync(nats.store, `${nats.store}.kept`);
  await nats.start();
}

async function restoreStore(nats: TestNats): Promise<void> {
  await nats.kill();
  rmSync(nats.store, { recursive: true });
  renameSync(`${nats.store}.kept`, nats.store);
  await nats.start();
}

describe('a NATS server that has lost its store', function () {
  this.timeout(120_000);
  let nats: TestNats;
  beforeEach(async () => {
    nats = await startNats();
  });
  afterEach(async () => {
    await nats[Symbol.asyncDispose]();
  });

  it('is told by the scheduler, which goes on when it has its store again', async () => {
    await using scheduler = await startScheduler(nats.url);
    await scheduler.client.submitTask({ spec: taskSpec('kept') });
    const refused = (): Promise<PolarError | undefined> =>
      scheduler.client.getTask({ taskId: 'kept' }).then(
        () => undefined,
        (error) => error,
      );
    await restartEmpty(nats);
    let error: PolarError | undefined;
    await eventually('the cause is told', async () => {
      error = await refused();
      return /no stream/.test(error?.message ?? '');
    });
    expect(error?.reason).to.equal('NATS_UNAVAILABLE');
    expect(error?.message)
      .to.contain('start it with the store that it had')
      .and.contain('start all services again');
    await restoreStore(nats);
    await eventually('it answers again', async () => (await refused()) === undefined);
  });

  it('is no line in the log of the LLM proxy for each time that it is asked again', async () => {
    const { log, lines } = loggedLines();
    const bus = await openBus({ url: nats.url, name: 'test' });
    const stop = new AbortController();
    try {
      await Capabilities.watch({ bus, log, signal: stop.signal, onRevoked: () => {} });
      await restartEmpty(nats);
      await eventually('it is told', () => lines.some((line) => line.includes('stream not found')));
      const told = lines.length;
      await sleep(1_000);
      expect(lines.slice(told)).to.deep.equal([]);
    } finally {
      stop.abort();
      await bus.close();
    }
  });
});
