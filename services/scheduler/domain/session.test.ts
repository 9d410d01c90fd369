import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { SessionStatsSchema } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { BuiltSchema, EvaluatedSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import {
  cancelled,
  dispatched,
  ended,
  moved,
  Outcome,
  queuedSession,
  running,
  SessionState,
  sessionOf,
} from './session.ts';
import { specDigest, taskRecord } from './task.ts';

describe('a session', () => {
  const spec = create(TaskSpecSchema, { taskId: 't', numSamples: 1, harness: { name: 'shell' } });
  const about = { filesRef: undefined, specSha256: specDigest(spec), requestId: 'r', createMs: 1_000 };
  const queued = queuedSession(taskRecord({ spec, sessionPrefix: 's', ...about }), spec, 0);
  const preparing = dispatched(queued, { nodeId: 'n', bootId: 'b' }, 2_000);
  const ready = moved(preparing, SessionState.READY, 5_000, { prepareMs: 3_000n });

  it('has as its own the time of the stage in which it was cancelled, as its attempt has', () => {
    const [inRun, inPrepare] = [cancelled(running(ready, 9_000), 31_500), cancelled(preparing, 2_700)];
    for (const [record, times] of [
      [inRun, { queueMs: 1_000n, prepareMs: 3_000n, readyMs: 4_000n, runMs: 22_500n, totalMs: 30_500n }],
      [inPrepare, { queueMs: 1_000n, prepareMs: 700n, runMs: 0n, totalMs: 1_700n }],
    ] as const) {
      const session = sessionOf(record);
      expect(session.times).to.include(times);
      expect(session.attempts[0]?.times).to.include({ ...times, totalMs: 0n });
    }
  });

  it('that counts for nothing keeps nothing that was built or graded', () => {
    const stats = create(SessionStatsSchema, { trainedTokens: 5n });
    const begun = running(ready, 9_000);
    const graded = {
      ...{ ...begun, session: { ...sessionOf(begun), stats } },
      ...{ built: create(BuiltSchema), evaluated: create(EvaluatedSchema, { reward: 1 }) },
    };
    const kept = (outcome: Outcome) => {
      const { built, evaluated, session } = ended(graded, outcome, 10_000);
      return [session?.reward, session?.stats, built, evaluated].map((one) => one !== undefined);
    };
    expect(kept(Outcome.HARNESS_ERROR)).to.deep.equal([true, true, true, true]);
    for (const outcome of [Outcome.INFRASTRUCTURE_ERROR, Outcome.CANCELLED])
      expect(kept(outcome)).to.deep.equal([false, false, false, false]);
  });
});
