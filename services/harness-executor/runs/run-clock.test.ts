import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Policy, PolicySchema } from '../../../gen/ts/polar/event/v1/policy_pb.js';
import { HeldTimes } from '../../common/held-times.ts';
import { RunClock } from './run-clock.ts';

const HOUR_MS = 3_600_000;
const { now } = Date;

describe("a run's clock", () => {
  afterEach(() => {
    Date.now = now;
  });

  /** What is left of a minute when the policy changes, once the wall clock was set. */
  const leftMs = (setByMs: number, policy = create(PolicySchema)): number => {
    let changed = (): void => {};
    let left = 0;
    const onChange = (listener: () => void): Disposable => {
      changed = listener;
      return { [Symbol.dispose]: () => {} };
    };
    const held = new HeldTimes();
    held.hear(policy, now());
    using _ = new RunClock({ held, onChange }, 60_000).follow((ms) => {
      left = ms;
    });
    Date.now = () => now() + setByMs;
    changed();
    Date.now = now;
    return left;
  };

  /** A pause for an hour, by a proxy whose clock is apart. */
  const pausedBy = (apartMs: number): Policy => {
    const startMs = BigInt(now() + apartMs);
    const pauseExpireMs = startMs + BigInt(HOUR_MS);
    return create(PolicySchema, { pauseId: 'p', pauseExpireMs, pauses: [{ startMs, endMs: 0n }] });
  };

  it('does not go by the wall clock', () => {
    for (const byMs of [0, 9 * HOUR_MS, -9 * HOUR_MS]) {
      const left = leftMs(byMs);
      expect(left, `${byMs}`).to.be.within(50_000, 60_000);
      expect(Number.isInteger(left), 'a duration takes whole milliseconds').to.equal(true);
    }
  });

  it('stands still while calls are held, until some time after the pause can have ended', () => {
    for (const byMs of [0, 9 * HOUR_MS, -9 * HOUR_MS]) {
      const left = leftMs(byMs, pausedBy(byMs));
      expect(left, `${byMs}`).to.be.within(60_000 + HOUR_MS, 60_000 + HOUR_MS + 30_000);
    }
  });
});
