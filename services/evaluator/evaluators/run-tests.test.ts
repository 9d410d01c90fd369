import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { AttemptRefSchema, EvaluateWorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { ExecResultSchema } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { ExecOutput } from '../../common/exec.ts';
import { runTests } from './run-tests.ts';

/** Four times apply_timeout, and the tests. */
const GRANTED_SECONDS = 4 * 1 + 10;
const GRANTED_MS = GRANTED_SECONDS * 1000;

describe('tests that do not end', () => {
  const endless = async (): Promise<ExecOutput> => ({
    stdout: new Uint8Array(),
    stderr: new Uint8Array(),
    result: create(ExecResultSchema, { timedOut: true }),
  });
  const found = async (budgetMs: number, leftMs: number): Promise<unknown> => {
    const evaluation = {
      ref: create(AttemptRefSchema),
      work: create(EvaluateWorkSchema, { timeoutMs: BigInt(budgetMs) }),
      remainingMs: () => leftMs,
      kept: { outcome: undefined },
    };
    const limits = { testSeconds: 10, grantedSeconds: GRANTED_SECONDS };
    return await runTests(evaluation, limits, endless).then(
      ({ result }) => result.timedOut,
      ({ reason }) => reason,
    );
  };

  it('in test_timeout are known not to end', async () => {
    for (const budgetMs of [10_000, GRANTED_MS, 1_000_000]) {
      expect(await found(budgetMs, 10_000), `${budgetMs}`).to.equal(true);
    }
  });

  it('in less have no reward, where all limits had room in the budget: the machine was slow', async () => {
    for (const budgetMs of [GRANTED_MS, 1_000_000]) {
      expect(await found(budgetMs, 9_999), `${budgetMs}`).to.equal('EVALUATION_TIMEOUT');
    }
  });

  it('are known not to in half of a budget, where the task has set it smaller; in less, no reward', async () => {
    const budgetMs = GRANTED_MS - 1;
    expect(await found(budgetMs, Math.ceil(budgetMs / 2))).to.equal(true);
    expect(await found(budgetMs, Math.ceil(budgetMs / 2) - 1)).to.equal('EVALUATION_TIMEOUT');
  });
});
