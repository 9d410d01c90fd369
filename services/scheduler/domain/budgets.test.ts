import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { SessionRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { HARNESS_INSTALL_MS, LEASE_MARGIN_MS, LEASE_MAX_MS } from '../../common/limits.ts';
import { budgetMs, leaseMs } from './budgets.ts';
import { ranMs } from './ran.ts';
import { SessionState } from './session.ts';

const HOUR_MS = 3_600_000;
const specWith = (prepare: number, run: number) => {
  const [queue, ready, build, evaluate] = [7, 20, 7, 4_000].map(durationFromMs);
  const budgets = { prepare: durationFromMs(prepare), run: durationFromMs(run) };
  return create(TaskSpecSchema, { budgets: { ...budgets, queue, ready, build, evaluate } });
};

describe('budgets', () => {
  it('make the lease of a sandbox: of all stages that use it, up to a day', () => {
    expect(leaseMs(specWith(1, 300))).to.equal(1 + 20 + 300 + 4_000 + LEASE_MARGIN_MS);
    expect(leaseMs(specWith(LEASE_MAX_MS, 1))).to.equal(LEASE_MAX_MS);
  });

  it('give an install its own, whatever the task says', () => {
    expect(budgetMs(specWith(1, 2), 'install')).to.equal(HARNESS_INSTALL_MS);
    expect(budgetMs(create(TaskSpecSchema), 'run')).to.equal(0);
  });
});

describe('what a run took', () => {
  const spec = specWith(1, 60_000);
  const at = (state: SessionState, stateMs: number, runMs?: number) =>
    create(SessionRecordSchema, {
      session: { state, ...(runMs !== undefined && { times: { runMs: BigInt(runMs) } }) },
      stateMs: BigInt(stateMs),
    });
  const begun = at(SessionState.RUNNING, 1_000);

  it('is by the records, and by the word of the executor where the clock was set meanwhile', () => {
    expect(ranMs(begun, at(SessionState.FINISHING, 31_000, 29_000), spec)).to.equal(30_000);
    expect(ranMs(begun, at(SessionState.FINISHING, 9 * HOUR_MS, 29_000), spec)).to.equal(29_000);
    expect(ranMs(begun, at(SessionState.FINISHING, 0, 2 * HOUR_MS), spec)).to.equal(2 * HOUR_MS);
    expect(ranMs(begun, at(SessionState.RUNNING, 31_000), spec)).to.equal(undefined);
  });

  it('is no more than a run may take, where nobody tells', () => {
    const most = 60_000 + HARNESS_INSTALL_MS + 30_000 + HOUR_MS;
    expect(ranMs(begun, at(SessionState.QUEUED, 9 * HOUR_MS), spec)).to.equal(most);
    expect(ranMs(begun, at(SessionState.QUEUED, 0), spec)).to.equal(0);
  });
});
