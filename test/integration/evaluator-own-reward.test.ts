// Rewards that a task finds in its own way: from some of the tests alone, or by what its command prints.
import { expect } from 'chai';
import { Evaluations, SOLVE } from '../support/evaluations.ts';

const SOME_FAIL = {
  test_command: 'echo "PASSED fixed"; echo "FAILED flaky"',
  expected_output_json: { fixed: 'PASSED' },
};
const HARBOR = {
  test_command: 'mkdir -p /logs/verifier && echo 0.75 > /logs/verifier/reward.txt; echo PASSED ran',
  expected_output_json: { ran: 'PASSED' },
  rewards_command: `echo "{\\"reward\\": $(cat /logs/verifier/reward.txt)}"`,
};

describe('evaluator, by rules of the task,', function () {
  this.timeout(60_000);
  let evaluations: Evaluations;
  before(async () => {
    evaluations = await Evaluations.open();
  });
  after(async () => {
    await evaluations.checkClear();
    await evaluations[Symbol.asyncDispose]();
  });

  /** Reward, and whether the tests were as expected. */
  async function graded(config: object): Promise<unknown[]> {
    const { reward, evaluation } = await evaluations.evaluated({ agent: SOLVE, config });
    return [reward, evaluation?.['resolved']];
  }

  it('leaves out tests that are not listed', async () => {
    expect(await graded(SOME_FAIL)).to.deep.equal([0, false]);
    const listed = { ...SOME_FAIL, unlisted_tests: 'ignore' };
    expect(await graded(listed)).to.deep.equal([1, true]);
    expect(await graded({ ...listed, expected_output_json: { other: 'PASSED' } })).to.deep.equal([0, false]);
  });

  it('gives the reward that its command prints, and tells whether the tests passed', async () => {
    expect(await graded(HARBOR)).to.deep.equal([0.75, true]);
    expect(await graded({ ...HARBOR, ...SOME_FAIL, rewards_command: `echo '{"reward": -2}'` })).to.deep.equal(
      [-2, false],
    );
    expect(await graded({ ...HARBOR, rewards_command: `echo '{"trace_rewards": {}}'` })).to.deep.equal([
      1,
      true,
    ]);
  });
});
