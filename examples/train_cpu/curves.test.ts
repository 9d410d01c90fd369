// What is said of runs, from rewards that are made up.
import { execFileSync } from 'node:child_process';
import { expect } from 'chai';

const SUMMARY = `
import json, sys
import curves
rows = [{"reward": reward, "sessions": 64, "seconds": 10.0 * at} for at, reward in enumerate(json.load(sys.stdin), 1)]
of = curves.summary(rows)
print(json.dumps({"twice_after": of.twice_after, "change": of.change, "error": of.change_error, "flat": of.flat}))
`;

interface Said {
  readonly twice_after: number | null;
  readonly change: number;
  readonly error: number;
  readonly flat: boolean;
}

function summaryOf(rewards: readonly number[]): Said {
  const options = { cwd: import.meta.dirname, input: JSON.stringify(rewards), encoding: 'utf8' } as const;
  return JSON.parse(execFileSync('python3', ['-E', '-B', '-c', SUMMARY], options)) as Said;
}

/** As many steps, up and down by `noise` in turns around a line. */
const line = (steps: number, start: number, end: number, noise: number): number[] =>
  Array.from(
    { length: steps },
    (_, i) => start + ((end - start) * i) / (steps - 1) + noise * (-1) ** (i >> 1),
  );

describe('what is said of a curve of train_cpu', () => {
  it('is twice its start where it comes to that', () => {
    const { twice_after, change, flat } = summaryOf(line(21, 0.1, 0.9, 0));
    // Mean of the first three: 0.14; of those from 0.26 to 0.34: 0.3.
    expect([twice_after, flat]).to.deep.equal([70, false]);
    expect(change).to.be.closeTo(0.8, 1e-9);
  });

  it('is flat where it goes nowhere but for its noise', () => {
    const { twice_after, change, error, flat } = summaryOf(line(24, 0.15, 0.15, 0.05));
    expect([twice_after, flat]).to.deep.equal([null, true]);
    expect(Math.abs(change)).to.be.below(error);
    // 0.05 around the line, two errors of a slope over 24 steps.
    expect(error).to.be.closeTo((2 * 23 * 0.05 * Math.sqrt(24 / 22)) / Math.sqrt(1150), 0.002);
  });

  it('is not flat where it falls or rises, or where the steps are too few to tell', () => {
    expect(summaryOf(line(24, 0.15, 0.02, 0.03)).flat).to.equal(false);
    expect(summaryOf(line(24, 0.15, 0.25, 0.03)).flat).to.equal(false);
    const few = summaryOf([0.2, 0.05, 0.25, 0.1, 0.15]);
    expect([few.flat, Math.abs(few.change) < few.error]).to.deep.equal([false, true]);
  });
});
