// Sessions whose traces are more than a trajectory may have: some are built, the others are masked and counted.
import { expect } from 'chai';
import { seeded } from '../../../test/support/laws.ts';
import { recordsOf } from '../../../test/support/records.ts';
import { madeUpSession } from '../../../test/support/sessions.ts';
import { breachesOf } from '../../../test/support/trace-laws.ts';
import { BLOB_BYTES_MAX } from '../../common/limits.ts';
import { DEFAULT_POLICIES } from '../../common/specs/strategies.ts';
import { type Build, build } from './build.ts';
import { expand } from './expand.ts';
import { EXPERT_BYTES_MAX } from './experts.ts';
import { TRACE_BYTES_MAX } from './fitted.ts';

const session = madeUpSession(seeded(11), 40, 30);
const calls = expand(recordsOf(session));
const columnBytes = ({ traces }: Build): number =>
  traces.reduce((sum, one) => sum + one.promptIds.length + 9 * one.lossMask.length, 0);

describe('traces above what a trajectory may have', () => {
  it('fit into a blob where they are as many as may be', () => {
    expect(TRACE_BYTES_MAX + EXPERT_BYTES_MAX).to.be.below(BLOB_BYTES_MAX);
  });

  for (const builder of ['per_request', 'prefix_merging'] as const) {
    for (const maxTokens of [undefined, 60]) {
      it(`are left out by ${builder}${maxTokens === undefined ? '' : ', behind the longest trace'}`, () => {
        const policies = { ...DEFAULT_POLICIES, max_trace_tokens: maxTokens };
        const whole = build(builder, calls, policies);
        const bytes = columnBytes(whole);
        expect(build(builder, calls, policies, bytes)).to.deep.equal(whole);
        for (const most of [0, Math.floor(bytes / 3), bytes - 1]) {
          const made = build(builder, calls, policies, most);
          expect(breachesOf(session, made, maxTokens)).to.deep.equal([]);
          expect(columnBytes(made)).to.be.at.most(most);
          expect(made.traces).to.deep.equal(whole.traces.slice(0, made.traces.length));
          const { too_large: leftOut, ...others } = made.stats.maskedTokens;
          expect(others).to.deep.equal(whole.stats.maskedTokens);
          expect(leftOut).to.equal(whole.stats.trainedTokens - made.stats.trainedTokens);
        }
      });
    }
  }
});
