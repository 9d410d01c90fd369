import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { PolicySchema } from '../../../gen/ts/polar/event/v1/policy_pb.js';
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
    using _ = new RunClock({ policy, onChange }, 60_000).follow((ms) => {
      left = ms;
    });
    Date.now = () => now() + setByMs;
    changed();
    Date.now = now;
    return left;
  };

  it('does not go by the wall clock', () => {
    for (const byMs of [0, 9 * HOUR_MS, -9 * HOUR_MS]) {
      const left = leftMs(byMs);
      expect(left, `${byMs}`).to.be.within(50_000, 60_000);
      expect(Number.isInteger(left), 'a duration takes whole milliseconds').to.equal(true);
    }
  });

  it('stands still while calls are held, and no longer than it went', () => {
    const startMs = BigInt(now() - HOUR_MS);
    const paused = create(PolicySchema, { pauses: [{ startMs, endMs: 0n }] });
    for (const byMs of [0, 9 * HOUR_MS]) expect(leftMs(byMs, paused)).to.be.within(59_999, 60_000);
  });
});
