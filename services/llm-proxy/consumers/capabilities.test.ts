import { expect } from 'chai';
import { sleep } from '../../common/clock.ts';
import { createLogger } from '../../common/logger.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { Capabilities } from './capabilities.ts';

const SILENT_MS = 300;

/** NATS, as far as a watch sees it: marks of sessions that have ended, one each 100 ms, and then `last` does. */
function slowBus(marks: number, last: (initialized: () => void) => void): Bus {
  const watch = async ({ initializedFn }: { initializedFn: () => void }) => {
    const stopped = Promise.withResolvers<void>();
    async function* entries() {
      for (let revision = 1; revision <= marks; revision++) {
        await sleep(SILENT_MS / 3);
        yield { key: `session-${revision}.1`, revision, operation: 'DEL' };
      }
      last(initializedFn);
      await stopped.promise;
    }
    return Object.assign(entries(), { stop: stopped.resolve });
  };
  return {
    kv: async () => ({ watch }),
    nc: { status: async function* () {} },
    jsm: { streams: { getMessage: () => Promise.reject(new Error('no message found')) } },
  } as unknown as Bus;
}

describe('capabilities', () => {
  const watching = (bus: Bus, signal: AbortSignal): Promise<Capabilities> => {
    const log = createLogger('test', 'silent');
    return Capabilities.watch({ bus, log, signal, onRevoked: () => {}, silentMs: SILENT_MS });
  };
  let stop: AbortController;
  beforeEach(() => {
    stop = new AbortController();
  });
  afterEach(() => stop.abort());

  it('are waited for as long as they come, however many were there', async () => {
    const bus = slowBus(7, (initialized) => initialized());
    expect([...(await watching(bus, stop.signal)).all]).to.deep.equal([]);
  });

  it('are not waited for where none comes any more', async () => {
    const error = await watching(
      slowBus(1, () => {}),
      stop.signal,
    ).catch((thrown) => thrown);
    expect(error).to.include({ reason: 'NATS_UNAVAILABLE' });
  });
});
