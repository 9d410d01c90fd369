import { expect } from 'chai';
import type { PolarError } from '../../common/errors.ts';
import { pluginVerdict } from './plugin-verdict.ts';

const CALLS = new Set(['a', 'b']);
const verdict = (given: unknown) => pluginVerdict(JSON.stringify(given), CALLS, 'what it gave');
const deepJson = `{"reward": 1, "told": ${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`;
const nested = (levels: number): object => (levels === 1 ? {} : { in: nested(levels - 1) });

describe('the verdict of an evaluator plug-in', () => {
  it('is a reward, and may be rewards of calls and what is told', () => {
    expect(verdict({ reward: 0.5 })).to.deep.equal({ reward: 0.5, told: {}, traceRewards: [] });
    const told = { why: ['x', 1, null], half: '\ud800' };
    expect(verdict({ reward: -2, trace_rewards: { b: 1 }, told })).to.deep.equal({
      ...{ reward: -2, traceRewards: [{ callId: 'b', reward: 1 }] },
      told: { why: ['x', 1, null], half: '\ufffd' },
    });
    expect(verdict({ reward: 0, told: nested(30) }).told).to.have.property('in');
  });

  it('is a failure, and none of the evaluator, however deep it is', () => {
    expect(() => pluginVerdict(deepJson, CALLS, 'what it gave')).to.throw(/more than 30 levels/);
  });

  it('is a failure where it is anything else', () => {
    const wrong: [unknown, RegExp][] = [
      [1, /is no object/],
      [[], /is no object/],
      [{}, /must have reward/],
      [{ trace_rewards: { a: 1 } }, /has no reward/],
      [{ reward: Number.NaN }, /reward/],
      [{ reward: '1' }, /reward/],
      [{ reward: true }, /reward/],
      [{ reward: 1e7 }, /reward/],
      [{ reward: 1, rewards: {} }, /rewards: unknown key/],
      [{ reward: 1, trace_rewards: { c: 1 } }, /trace_rewards\.c: the session has no such call/],
      [{ reward: 1, trace_rewards: { a: Number.POSITIVE_INFINITY } }, /trace_rewards\.a/],
      [{ reward: 1, told: [1] }, /told that is no object/],
      [{ reward: 1, told: null }, /told that is no object/],
      [{ reward: 1, told: nested(31) }, /more than 30 levels/],
      [{ reward: 1, told: { a: { '\ud800': 1 } } }, /keys in told/],
      [{ reward: 1, told: 'x'.repeat(1024 * 1024) }, /characters, above/],
    ];
    for (const [given, why] of wrong) {
      const error = (() => {
        try {
          return verdict(given);
        } catch (thrown) {
          return thrown as PolarError;
        }
      })();
      expect(error, JSON.stringify(given).slice(0, 80)).to.include({ reason: 'EVALUATOR_PLUGIN_FAILED' });
      expect((error as PolarError).message).to.match(why);
    }
  });
});
