import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import {
  PauseMode,
  type Policy,
  Policy_Phase,
  PolicySchema,
} from '../../../gen/ts/polar/event/v1/policy_pb.js';
import { asPolarError } from '../../common/errors.ts';
import { isServing, paused, pausing, published, resumed } from './policy.ts';

const serving = create(PolicySchema, { policyVersion: 3n, weightVersion: 'w3' });
const pauseAt = (policy: Policy, nowMs: number, id = `p${nowMs}`): Policy =>
  pausing(policy, { id, mode: PauseMode.KEEP, nowMs, ttlMs: 50 });
const reason = (change: () => unknown): string => {
  try {
    change();
  } catch (error) {
    return asPolarError(error).reason;
  }
  return '';
};

describe('policy', () => {
  it('goes from serving to pausing to paused and back, and remembers the pause', () => {
    const held = pauseAt(serving, 1_000);
    expect(held).to.include({
      phase: Policy_Phase.PAUSING,
      mode: PauseMode.KEEP,
      pauseId: 'p1000',
      pauseExpireMs: 1_050n,
    });
    expect(isServing(held)).to.equal(false);
    const reached = paused(held, 'p1000') as Policy;
    expect(reached.phase).to.equal(Policy_Phase.PAUSED);
    const back = resumed(reached, 'p1000', 1_500) as Policy;
    expect(back).to.include({
      phase: Policy_Phase.SERVING,
      pauseId: '',
      pauseExpireMs: 0n,
      policyVersion: 3n,
      weightVersion: 'w3',
    });
    expect(back.pauses.map(({ startMs, endMs }) => [startMs, endMs])).to.deep.equal([[1_000n, 1_500n]]);
  });

  it('has one pause at a time', () => {
    const held = pauseAt(serving, 1);
    expect(reason(() => pauseAt(held, 2))).to.equal('PAUSE_IN_PROGRESS');
    expect(reason(() => resumed(held, 'other', 2))).to.equal('PAUSE_IN_PROGRESS');
    expect(resumed(held, '', 2)).to.include({ phase: Policy_Phase.SERVING });
    expect(resumed(serving, 'any', 2)).to.equal(undefined);
    expect(paused(serving, 'p1')).to.equal(undefined);
    expect(paused(held, 'other')).to.equal(undefined);
  });

  it('never publishes an older version, nor one that has none above it', () => {
    expect(published(serving, { policyVersion: 3n, weightVersion: 'x' })).to.include({ weightVersion: 'x' });
    expect(published(pauseAt(serving, 1), { policyVersion: 4n, weightVersion: '' })).to.include({
      policyVersion: 4n,
      phase: Policy_Phase.PAUSING,
    });
    for (const policyVersion of [0n, 2n, 2n ** 53n, 2n ** 64n - 1n])
      expect(reason(() => published(serving, { policyVersion, weightVersion: '' }))).to.equal(
        'INVALID_REQUEST',
      );
  });

  it('forgets pauses of long ago, and more than it has room for', () => {
    let policy: Policy = serving;
    for (let i = 0; i < 300; i++) policy = resumed(pauseAt(policy, i * 10), '', i * 10 + 5) as Policy;
    expect(policy.pauses).to.have.length(256);
    expect(policy.pauses.at(-1)?.endMs).to.equal(2_995n);
    const later = pauseAt(policy, 2_000 + 24 * 3600 * 1000);
    expect(later.pauses.length).to.be.within(90, 110);
  });
});
