import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import {
  PauseMode,
  type Policy,
  Policy_Phase,
  PolicySchema,
} from '../../../gen/ts/polar/event/v1/policy_pb.js';
import { asPolarError } from '../../common/errors.ts';
import { isServing, paused, pausing, published, resumed } from './policy.ts';

const HOUR_MS = 3_600_000;

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

/** What the pauses of the document have in common with the time that is asked about. */
const heldMs = ({ pauses }: Policy, fromMs: number, toMs: number): number =>
  pauses.reduce((sum, { startMs, endMs }) => {
    const heldMs = Math.min(Number(endMs), toMs) - Math.max(Number(startMs), fromMs);
    return sum + Math.max(0, heldMs);
  }, 0);

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
    const back = resumed(reached, 'p1000', 500) as Policy;
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
    expect(published(serving, { policyVersion: 3n, weightVersion: 'w3' }), 'a repetition').to.equal(
      undefined,
    );
    for (const weightVersion of ['x', ''])
      expect(reason(() => published(serving, { policyVersion: 3n, weightVersion }))).to.equal(
        'VERSION_EXISTS',
      );
    expect(published(pauseAt(serving, 1), { policyVersion: 4n, weightVersion: '' })).to.include({
      policyVersion: 4n,
      phase: Policy_Phase.PAUSING,
    });
    for (const policyVersion of [0n, 2n, 2n ** 53n, 2n ** 64n - 1n])
      expect(reason(() => published(serving, { policyVersion, weightVersion: '' }))).to.equal(
        'INVALID_REQUEST',
      );
    const first = { policyVersion: 0n, weightVersion: '' };
    expect(reason(() => published(create(PolicySchema), first))).to.equal('INVALID_REQUEST');
  });

  /** A pause of `lengthMs` each `stepMs`, beginning with the first step. */
  function pauses(count: number, stepMs: number, lengthMs: number): Policy {
    let policy: Policy = serving;
    for (let i = 1; i <= count; i++) policy = resumed(pauseAt(policy, i * stepMs), '', lengthMs) as Policy;
    return policy;
  }

  it('forgets pauses of days ago', () => {
    const policy = pauses(100, 10, 5);
    expect(pauseAt(policy, 506 + 48 * HOUR_MS).pauses).to.have.length(51);
  });

  it('tells what runs were held, however many pauses there were, in a document that stays small', () => {
    const [stepMs, lengthMs] = [60_000, 10_000];
    const policy = pauses(1_440, stepMs, lengthMs);
    const endMs = 1_441 * stepMs;
    expect(policy.pauses.length).to.be.at.most(256);
    expect(toBinary(PolicySchema, policy).byteLength).to.be.below(5_000);
    expect(heldMs(policy, 0, endMs)).to.equal(1_440 * lengthMs);
    for (let minutes = 1; minutes < 1_440; minutes++) {
      // Between two pauses, and in one.
      for (const intoMs of [30_000, 5_000]) {
        const ageMs = minutes * stepMs - intoMs;
        const heldOf = (minutes - 1) * lengthMs + Math.max(0, lengthMs - intoMs);
        const told = heldMs(policy, endMs - ageMs, endMs);
        expect(told - heldOf, `${ageMs} ms ago`).to.be.within(0, ageMs * 0.01);
      }
    }
  });

  it('keeps the sum over proxies whose clocks differ', () => {
    let policy: Policy = serving;
    for (let i = 1; i <= 400; i++) {
      const apartMs = i % 3 === 0 ? 700 : 0;
      policy = resumed(pauseAt(policy, i * 1_000 - apartMs), '', 500) as Policy;
    }
    expect(heldMs(policy, 0, 500_000)).to.equal(400 * 500);
  });
});
