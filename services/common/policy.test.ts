import { expect } from 'chai';
import { heldMs } from './policy.ts';

describe('time in which calls were held', () => {
  const span = (startMs: number, endMs: number) => ({ startMs: BigInt(startMs), endMs: BigInt(endMs) });
  const policy = { pauses: [span(100, 200), span(300, 350), span(500, 0)] } as never;

  it('is what the pauses have in common with the time that is asked about', () => {
    expect(heldMs(policy, 0, 1_000)).to.equal(100 + 50 + 500);
    expect(heldMs(policy, 150, 320)).to.equal(50 + 20);
    expect(heldMs(policy, 200, 300)).to.equal(0);
    expect(heldMs(policy, 600, 700)).to.equal(100);
    expect(heldMs({ pauses: [] }, 0, 9)).to.equal(0);
  });

  it('is as long as the clock says that is given', () => {
    // 40 of it were slept.
    const passedMs = (from: number, to: number): number => to - from - (from < 310 && to >= 350 ? 40 : 0);
    expect(heldMs(policy, 0, 400, passedMs)).to.equal(100 + 10);
    expect(heldMs(policy, 320, 400, passedMs)).to.equal(30);
  });
});
