import { expect } from 'chai';
import { failureOf } from '../../common/errors.ts';
import { FAILURE_MESSAGE_CHARS_MAX } from '../../common/limits.ts';
import { rewardsIn } from './printed-rewards.ts';

const CALLS = new Set(['a', 'b']);
const MIB = 1024 * 1024;
const printed = (rewards: string): string => `{"trace_rewards": ${rewards}}`;
const faultOf = (output: string) => {
  try {
    return rewardsIn(output, CALLS);
  } catch (error) {
    return error;
  }
};

describe('rewards of traces, as a command prints them', () => {
  it('are one for each of some calls', () => {
    expect(rewardsIn(printed('{"a": 0.5, "b": -1}'), CALLS).traceRewards).to.eql([
      { callId: 'a', reward: 0.5 },
      { callId: 'b', reward: -1 },
    ]);
    expect(rewardsIn(printed('{}'), CALLS)).to.eql({ reward: undefined, traceRewards: [] });
  });

  it("may be the session's, alone or beside them", () => {
    expect(rewardsIn('{"reward": 0.25}', CALLS)).to.eql({ reward: 0.25, traceRewards: [] });
    const both = '{"reward": 0, "trace_rewards": {"b": 1}}';
    expect(rewardsIn(both, CALLS)).to.eql({ reward: 0, traceRewards: [{ callId: 'b', reward: 1 }] });
    for (const output of [
      '{}',
      '{"reward": NaN}',
      '{"reward": true}',
      '{"reward": 1, "rewards": {}}',
      '0.5',
    ]) {
      expect(faultOf(output), output).to.include({ reason: 'TRACE_REWARDS_INVALID' });
    }
  });

  it('are named where they are no numbers, in range, or of a call of the session', () => {
    const faulty: readonly (readonly [string, string])[] = [
      ['{"a": NaN}', 'trace_rewards.a'],
      ['{"a":-Infinity}', 'trace_rewards.a'],
      ['{"a": 0, "b": \n Infinity }', 'trace_rewards.b'],
      ['{"a": "1"}', 'trace_rewards.a'],
      ['{"b": 1000001}', 'trace_rewards.b'],
      ['{"c": 1}', 'trace_rewards.c: the session has no such call'],
      ['[NaN,NaN]', 'trace_rewards'],
      [`{${Array.from({ length: 2049 }, (_, i) => `"${i}": 1`)}}`, 'of 2049 calls, above 2048'],
    ];
    for (const [rewards, why] of faulty) {
      const error = faultOf(printed(rewards));
      expect(error, rewards).to.include({ reason: 'TRACE_REWARDS_INVALID' });
      expect((error as Error).message).to.contain(why);
    }
  });

  it('are not all named where very many are wrong', () => {
    const others = Array.from({ length: 2_000 }, (_, i) => `"other-${i}-${'x'.repeat(400)}": 1`);
    const error = faultOf(printed(`{${others}}`)) as Error;
    expect(error.message).to.contain('has 2000 fault(s)').and.contain('and 1900 more');
    const { message } = failureOf(error);
    expect(message).to.contain('other-0-');
    expect(message).to.have.length(FAILURE_MESSAGE_CHARS_MAX);
    const keys = Array.from({ length: 5_000 }, (_, i) => `"${i}": 1`);
    expect((faultOf(`{${keys}}`) as Error).message.length).to.be.below(FAILURE_MESSAGE_CHARS_MAX);
  });

  it('take no longer for much that is blank', () => {
    const blanks = ' '.repeat(4 * MIB);
    expect(rewardsIn(printed(`{"a":${blanks}1}`), CALLS).traceRewards).to.eql([{ callId: 'a', reward: 1 }]);
    for (const output of [blanks, `[${blanks}`, printed(`{"a":${blanks}NaN${blanks}`)]) {
      const error = faultOf(output);
      expect(error).to.include({ reason: 'TRACE_REWARDS_INVALID' });
      expect((error as Error).message).to.contain('printed no JSON');
    }
  });
});
