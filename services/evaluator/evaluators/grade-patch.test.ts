import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { AttemptRefSchema, EvaluateWorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { ExecResultSchema } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { testOnOutputConfig } from '../../common/specs/strategies.ts';
import type { Sandbox } from '../sandboxes/sandbox.ts';
import { gradePatch } from './grade-patch.ts';

/** Four times apply_timeout, and the tests. */
const GRANTED_MS = 4 * 1_000 + 10_000;

describe('tests that do not end', () => {
  const config = testOnOutputConfig.parse({
    ...{ repo_dir: '/repo', test_command: 'loop', apply_timeout: 1, test_timeout: 10 },
    expected_output_json: { a: 'PASSED' },
  });
  /** Each command is as long as it may be; applying the patch takes no time. */
  const endless: Sandbox = {
    exec: async (argv) => {
      const result = create(ExecResultSchema, { timedOut: argv.includes('loop') });
      return { stdout: new Uint8Array(), stderr: new Uint8Array(), result };
    },
    putFile: async () => {},
  };
  const graded = async (budgetMs: number, leftMs: number): Promise<unknown> => {
    const work = create(EvaluateWorkSchema, { timeoutMs: BigInt(budgetMs) });
    const evaluation = {
      ref: create(AttemptRefSchema),
      work,
      remainingMs: () => leftMs,
      kept: { outcome: undefined },
    };
    const job = { config, evaluation, rewards: async () => ({ reward: undefined, traceRewards: [] }) };
    const patch = { bytes: Buffer.from('x'), files: ['x'], excluded: [], isRead: true };
    return await gradePatch(job, endless, patch).then(
      ({ reward }) => reward,
      ({ reason }) => reason,
    );
  };

  it('in test_timeout have 0', async () => {
    for (const budgetMs of [10_000, GRANTED_MS, 1_000_000]) {
      expect(await graded(budgetMs, 10_000), `${budgetMs}`).to.equal(0);
    }
  });

  it('in less have no reward, where all limits had room in the budget: the machine was slow', async () => {
    for (const budgetMs of [GRANTED_MS, 1_000_000]) {
      expect(await graded(budgetMs, 9_999), `${budgetMs}`).to.equal('EVALUATION_TIMEOUT');
    }
  });

  it('in half of a budget have 0, where the task has set it smaller; in less, no reward', async () => {
    const budgetMs = GRANTED_MS - 1;
    expect(await graded(budgetMs, Math.ceil(budgetMs / 2))).to.equal(0);
    expect(await graded(budgetMs, Math.ceil(budgetMs / 2) - 1)).to.equal('EVALUATION_TIMEOUT');
  });
});
