import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Policy, PolicySchema } from '../../gen/ts/polar/event/v1/policy_pb.js';
import { HeldTimes } from './held-times.ts';

const HOUR_MS = 3_600_000;

/** Pauses of the document; the last one, without an end, is open and may last for 1,000 ms. */
function policy(...pauses: [startMs: number, endMs?: number][]): Policy {
  const spans = pauses.map(([startMs, endMs = 0]) => ({ startMs: BigInt(startMs), endMs: BigInt(endMs) }));
  const open = spans.find(({ endMs }) => endMs === 0n);
  return create(PolicySchema, {
    pauses: spans,
    ...(open && { pauseId: `p${open.startMs}`, pauseExpireMs: open.startMs + 1_000n }),
  });
}

describe('times in which calls were held', () => {
  let nowMs = 0;
  let held: HeldTimes;
  beforeEach(() => {
    nowMs = 0;
    held = new HeldTimes(() => nowMs);
  });
  const hearAt = (ms: number, one: Policy): void => {
    nowMs = ms;
    held.hear(one, 0);
  };

  for (const apartMs of [0, HOUR_MS, 2 * HOUR_MS]) {
    it(`are as they are heard of, by a proxy whose clock is ${apartMs / HOUR_MS} hours ahead`, () => {
      hearAt(0, policy());
      hearAt(100, policy([apartMs + 100]));
      expect([held.isHeld, held.leftMs]).to.deep.equal([true, 1_000]);
      nowMs = 150;
      expect([held.lastsMs(`p${apartMs + 100}`), held.leftMs]).to.deep.equal([50, 950]);
      expect([held.inLast(30), held.inLast(80)]).to.deep.equal([30, 50]);
      hearAt(200, policy([apartMs + 100, apartMs + 200]));
      expect([held.isHeld, held.leftMs, held.lastsMs(`p${apartMs + 100}`)]).to.deep.equal([false, 0, 0]);
      nowMs = 250;
      expect([held.inLast(50), held.inLast(90), held.inLast(1_000)]).to.deep.equal([0, 40, 100]);
    });
  }

  it('are over when they have lasted for as long as they may', () => {
    hearAt(0, policy());
    hearAt(100, policy([HOUR_MS]));
    nowMs = 1_100;
    expect([held.leftMs, held.lastsMs(`p${HOUR_MS}`)]).to.deep.equal([0, 1_000]);
  });

  it('are as long as the document says where they were heard of late', () => {
    hearAt(0, policy());
    hearAt(500, policy([10, 60], [200, 300], [400]));
    nowMs = 510;
    // One after the other, as far as is known, up to when they were heard of.
    expect([10, 60, 110, 500].map((ms) => held.inLast(ms))).to.deep.equal([10, 60, 110, 160]);
    hearAt(520, policy([10, 60], [200, 300], [400, 520]));
    expect(held.inLast(520)).to.equal(50 + 100 + 120);
  });

  it('of before the first word are as the wall clock has them', () => {
    nowMs = 1_000;
    held.hear(policy([HOUR_MS - 500, HOUR_MS - 300], [HOUR_MS - 100]), HOUR_MS);
    expect([held.inLast(100), held.inLast(400), held.inLast(900)]).to.deep.equal([100, 200, 300]);
    expect([held.lastsMs(`p${HOUR_MS - 100}`), held.leftMs]).to.deep.equal([100, 1_000]);
  });

  it('are told whole, however many they were', () => {
    hearAt(0, policy());
    for (let i = 1; i <= 5_000; i++) hearAt(i * 10, policy([i * 10 - 5, i * 10]));
    expect(held.inLast(50_000)).to.equal(5_000 * 5);
    expect(held.inLast(10_000)).to.equal(1_000 * 5);
  });
});
