// The state log as the next scheduler finds it: what is in it can be read, or is told to be what cannot.
import { create, type JsonObject } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { ChangeSchema } from '../../gen/ts/polar/event/v1/state_pb.js';
import { asPolarError } from '../../services/common/errors.ts';
import { createLogger } from '../../services/common/logger.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { completeTaskSpec } from '../../services/common/specs/task-spec.ts';
import { taskRecord } from '../../services/scheduler/domain/task.ts';
import { Chain, lastSeqOf } from '../../services/scheduler/journal/chain.ts';
import { readManifest } from '../../services/scheduler/journal/snapshots.ts';
import { openStateLog } from '../../services/scheduler/journal/state-log.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { startScheduler, taskSpec, until } from '../support/scheduler.ts';

const nested = (levels: number): JsonObject =>
  JSON.parse(`${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`);

describe('scheduler state log', () => {
  const { signal } = new AbortController();
  let nats: TestNats;
  let bus: Bus;
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
  });
  afterEach(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  it('is read with a task that is deeper than tasks may be, from the log, a snapshot and the archive', async () => {
    const log = createLogger('test', 'silent');
    const options = { bus, blobs: createBlobStore(bus), log, holder: 'test', signal };
    const { journal } = await openStateLog({ ...options, onCommitted: () => {}, onFailed: () => {} });
    const spec = completeTaskSpec(taskSpec('deep', { metadata: nested(60) }));
    const init = { filesRef: undefined, specSha256: '', requestId: 'deep', sessionPrefix: 's-deep' };
    const value = taskRecord({ spec, ...init, createMs: Date.now() });
    await journal.propose(create(ChangeSchema, { kind: { case: 'task', value } }));

    await using first = await startScheduler(nats.url, { commitsPerSnapshot: 1 });
    const metadataOf = async (client = first.client): Promise<unknown> =>
      (await client.getTask({ taskId: 'deep' })).task?.spec?.metadata;
    expect(await metadataOf()).to.deep.equal(nested(60));
    await first.client.submitTask({ spec: taskSpec('other') });
    await until('a snapshot is there', async () => (await readManifest(bus, signal)) !== undefined);
    await first[Symbol.asyncDispose]();

    await using second = await startScheduler(nats.url);
    expect(await metadataOf(second.client)).to.deep.equal(nested(60));
    await second.client.cancelTask({ taskId: 'deep' });
    await until('it is in the archive', async () => {
      const { tasks } = await second.client.listTasks({});
      return tasks.map(({ taskId }) => taskId).join() === 'other,deep';
    });
    await using third = await startScheduler(nats.url);
    await second[Symbol.asyncDispose]();
    await third.leading;
    expect(await metadataOf(third.client)).to.deep.equal(nested(60));
  });

  for (const [what, commit, why] of [
    // A field of two bytes, of which one is there.
    ['that cannot be read', [0x12, 2, 0x61], 'cannot be read'],
    // A change whose only field is the 1000th.
    ['of a newer version', [0x12, 3, 0xc2, 0x3e, 0], 'holds a change that this version does not know'],
  ] as const) {
    it(`${what} ends the boot with its reason, and is not taken for NATS being away`, async () => {
      const chain = new Chain(bus, await lastSeqOf(bus));
      const seq = await chain.append(new Uint8Array(commit), 'written before', signal);
      const error = await startScheduler(nats.url).then(
        (started) => started[Symbol.asyncDispose]().then(() => expect.fail('it leads')),
        asPolarError,
      );
      expect(error.reason).to.equal('STATE_INVALID');
      expect(error.message).to.contain(`commit ${seq} of the state log ${why}`);
    });
  }
});
