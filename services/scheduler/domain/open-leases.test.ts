import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type SessionRecord, TaskRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { opened } from './external.ts';
import { leaseFault, OPEN_LEASE_MS_MAX, OpenLeases } from './open-leases.ts';
import { queuedSession } from './session.ts';

const task = create(TaskRecordSchema, { taskId: 't', sessionPrefix: 's', numSamples: 1 });
const spec = create(TaskSpecSchema, { taskId: 't', harness: { name: 'external' } });
const LEASE_MS = 60_000;
const openFor = (leaseMs: number): SessionRecord =>
  opened(queuedSession(task, spec, 0), { nodeId: 'n', bootId: 'b' }, { requestId: 'r', leaseMs }, 1_000_000);
const record = openFor(LEASE_MS);
const first = { sessionId: 's-0', attempt: 1 };

/** Looks each second, as the scheduler does several times. */
function lookOn(leases: OpenLeases, fromMs: number, toMs: number): void {
  for (let ms = fromMs; ms <= toMs; ms += 1_000) leases.look(ms);
}

describe('leases of open sessions', () => {
  it('lapse when nothing was said of that attempt for so long, and not otherwise', () => {
    const leases = new OpenLeases(0, () => true);
    const closed = { ...record, closed: { outcome: 1 } } as SessionRecord;
    lookOn(leases, 0, 1_059_000);
    expect(leases.hasLapsed(record, 1_060_000)).to.equal(false);
    leases.renew({ ...first, attempt: 2 }, 1_059_000);
    expect(leases.hasLapsed(record, 1_060_001)).to.equal(true);
    for (const one of [openFor(0), closed]) expect(leases.hasLapsed(one, 9_999_999)).to.equal(false);
    leases.renew(first, 1_060_001);
    expect(leases.hasLapsed(record, 1_120_001)).to.equal(false);
    expect(leases.hasLapsed(record, 1_120_002)).to.equal(true);
  });

  it('begin anew where nobody was heard: at first, without the lead, and where this process stood still', () => {
    let isHeard = true;
    const leases = new OpenLeases(2_000_000, () => isHeard);
    expect(leases.hasLapsed(record, 2_060_000)).to.equal(false);
    lookOn(leases, 2_000_000, 2_059_000);
    isHeard = false;
    leases.look(2_060_000);
    isHeard = true;
    lookOn(leases, 2_061_000, 2_120_000);
    expect(leases.hasLapsed(record, 2_120_000)).to.equal(false);
    expect(leases.hasLapsed(record, 2_120_001)).to.equal(true);
    leases.look(2_500_000);
    expect(leases.hasLapsed(record, 2_560_000)).to.equal(false);
  });

  it('have a least and a greatest', () => {
    for (const ms of [1_000, OPEN_LEASE_MS_MAX]) expect(leaseFault(ms)).to.equal(undefined);
    for (const ms of [-1, 0, 999, OPEN_LEASE_MS_MAX + 1, Number.NaN])
      expect(leaseFault(ms)).to.contain('must be');
  });
});
