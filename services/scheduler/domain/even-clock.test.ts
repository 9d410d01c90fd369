import { expect } from 'chai';
import { EvenClock } from './even-clock.ts';

const HOUR_MS = 3_600_000;

describe("the scheduler's clock", () => {
  let wallMs = 0;
  let steadyMs = 0;
  const pass = (ms: number): void => {
    wallMs += ms;
    steadyMs += ms;
  };
  const made = (): EvenClock => {
    [wallMs, steadyMs] = [1_000 * HOUR_MS, 0];
    return new EvenClock(
      () => wallMs,
      () => steadyMs,
    );
  };

  it('is the wall clock while nobody sets that', () => {
    const clock = made();
    for (let i = 0; i < 100; i++) {
      pass(100);
      expect(clock.now()).to.equal(wallMs);
    }
  });

  for (const [way, byMs] of [['forward', HOUR_MS] as const, ['back', -HOUR_MS] as const]) {
    it(`goes on where the wall clock is set ${way}, and comes to it slowly`, () => {
      const clock = made();
      const before = clock.now();
      wallMs += byMs;
      pass(100);
      expect(clock.now() - before).to.be.within(90, 110);
      let last = clock.now();
      for (let i = 0; i < 1_000; i++) {
        pass(1_000);
        const now = clock.now();
        expect(now - last).to.be.within(899, 1_101);
        last = now;
      }
      for (let i = 0; i < 10; i++) {
        pass(HOUR_MS);
        clock.now();
      }
      expect(clock.now()).to.equal(wallMs);
    });
  }

  it('takes a wall clock that is more than 90 minutes away as it is', () => {
    const clock = made();
    for (const byMs of [1.6 * HOUR_MS, -1.6 * HOUR_MS]) {
      wallMs += byMs;
      pass(1);
      expect(clock.now()).to.equal(wallMs);
    }
  });

  it('is right again after a night that the machine slept, and its steady clock with it', () => {
    const clock = made();
    pass(HOUR_MS);
    clock.now();
    wallMs += 8 * HOUR_MS;
    pass(100);
    expect(clock.now()).to.equal(wallMs);
  });

  it('knows what passed between two moments, whatever it was put right by', () => {
    const clock = made();
    pass(HOUR_MS);
    const before = clock.now();
    pass(HOUR_MS);
    expect(clock.passedMs(before, clock.now())).to.equal(HOUR_MS);
    // Asleep; then set to another hour, which it comes to slowly; then set by a day.
    for (const byMs of [8 * HOUR_MS, HOUR_MS, 24 * HOUR_MS]) {
      const then = clock.now();
      wallMs += byMs;
      for (let i = 0; i < 600; i++) {
        pass(1_000);
        expect(clock.passedMs(then, clock.now())).to.be.within(
          (i + 1) * 1_000 - 5_001,
          (i + 1) * 1_000 + 5_001,
        );
      }
    }
    pass(20 * HOUR_MS);
    const passed = clock.passedMs(before, clock.now());
    expect(passed).to.be.within(21.5 * HOUR_MS - 5_001, 21.5 * HOUR_MS + 5_001);
  });

  it('knows it, too, where it was put back behind the first of them', () => {
    const clock = made();
    const before = clock.now();
    pass(60_000);
    clock.now();
    wallMs -= 24 * HOUR_MS;
    pass(60_000);
    const now = clock.now();
    expect(now).to.be.below(before);
    expect(clock.passedMs(before, now)).to.equal(120_000);
    pass(60_000);
    expect(clock.passedMs(before, clock.now())).to.equal(180_000);
    expect(clock.passedMs(now, clock.now())).to.equal(60_000);
  });

  for (const byMs of [HOUR_MS, -HOUR_MS, 10 * HOUR_MS, -10 * HOUR_MS]) {
    it(`knows what passed since what one timed that was ${byMs / HOUR_MS} hours away, and went on meanwhile`, () => {
      const clock = made();
      const then = wallMs + byMs;
      pass(60_000);
      clock.goOn(then + 60_000);
      expect(clock.passedMs(then, clock.now())).to.equal(60_000);
      for (let i = 2; i <= 20; i++) {
        pass(60_000);
        expect(clock.passedMs(then, clock.now())).to.be.within(i * 60_000 - 5_001, i * 60_000 + 5_001);
      }
      pass(20 * HOUR_MS);
      expect(clock.now()).to.equal(wallMs);
    });
  }

  it('is not behind what is stored, unless that is further ahead than a clock is set', () => {
    const clock = made();
    clock.notBefore(wallMs + HOUR_MS);
    expect(clock.now()).to.equal(wallMs + HOUR_MS);
    const other = made();
    other.notBefore(wallMs + 2 * HOUR_MS);
    expect(other.now()).to.equal(wallMs);
  });
});
