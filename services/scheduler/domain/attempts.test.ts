import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import {
  type SessionRecord,
  SessionRecordSchema,
  TaskRecordSchema,
} from '../../../gen/ts/polar/event/v1/state_pb.js';
import { failure, type PolarError } from '../../common/errors.ts';
import { COMMIT_BYTES_MAX, FAILURE_MESSAGE_CHARS_MAX } from '../../common/limits.ts';
import { ATTEMPTS_PER_SESSION_MAX, checkAttempts } from './attempts.ts';
import {
  attemptLost,
  dispatched,
  isEnded,
  queuedSession,
  retried,
  SessionState,
  sessionOf,
  withDenied,
} from './session.ts';

const MAX_ATTEMPTS = 10;
const WHY = failure('SANDBOX_FAILED', 'x'.repeat(FAILURE_MESSAGE_CHARS_MAX));
const targets = Array.from({ length: 20 }, (_, i) => `host-${i}.example.com:443`);

describe('attempts', () => {
  const task = create(TaskRecordSchema, { taskId: 't', sessionPrefix: 's-t', numSamples: 1, createMs: 1n });
  const lost = (record: SessionRecord): SessionRecord => {
    const begun = dispatched(record, { nodeId: 'node-1', bootId: 'boot-1' }, 1_000);
    const denied = withDenied(begun, { $typeName: 'polar.common.v1.DeniedConnections', count: 20, targets });
    return attemptLost(denied, WHY, MAX_ATTEMPTS, 2_000);
  };

  it('are all kept, and fit a commit, however often the session goes again', () => {
    let record = queuedSession(task, create(TaskSpecSchema), 0);
    while (sessionOf(record).attempt < ATTEMPTS_PER_SESSION_MAX) {
      record = lost(isEnded(record) ? retried(record, 'g1', 3_000) : record);
    }
    expect(toBinary(SessionRecordSchema, record).byteLength).to.be.below(COMMIT_BYTES_MAX);
    const { attempts } = sessionOf(record);
    expect(attempts.map(({ attempt }) => attempt)).to.deep.equal(
      Array.from({ length: ATTEMPTS_PER_SESSION_MAX }, (_, i) => i + 1),
    );
    expect(
      attempts.every(
        ({ failure: why, endTime }) => why?.reason === 'SANDBOX_FAILED' && endTime !== undefined,
      ),
    ).to.equal(true);
    for (const { failure: why, denied } of attempts.slice(-MAX_ATTEMPTS)) {
      expect(why?.message).to.equal(WHY.message);
      expect(denied?.targets).to.have.length(20);
    }
    expect(attempts[0]?.denied).to.deep.include({ count: 20, targets: [] });
    expect(attempts[0]?.failure?.message).to.have.length(100);
    try {
      checkAttempts(sessionOf(record));
      expect.fail('it was let go again');
    } catch (error) {
      expect((error as PolarError).reason).to.equal('ATTEMPTS_LIMIT');
    }
  });

  it('count but where a service was stopped, up to a limit', () => {
    const stopped = failure('SHUTTING_DOWN', 'node node-1 was stopped');
    const once = (record: SessionRecord, why = stopped): SessionRecord =>
      attemptLost(dispatched(record, { nodeId: 'node-1', bootId: 'boot-1' }, 1_000), why, 2, 2_000);
    let record = once(queuedSession(task, create(TaskSpecSchema), 0), WHY);
    for (let i = 0; i < 20; i++) record = once(record);
    expect(sessionOf(record)).to.include({ attempt: 21, state: SessionState.QUEUED });
    const over = once(record, WHY);
    expect(isEnded(over), 'the second that counts').to.equal(true);
    const again = once(retried(over, 'g1', 3_000), WHY);
    expect([again, once(again, WHY)].map(isEnded), 'as many on request').to.deep.equal([false, true]);
    while (!isEnded(record)) record = once(record);
    expect(sessionOf(record)).to.include({ attempt: ATTEMPTS_PER_SESSION_MAX });
    expect(sessionOf(record).failure).to.include({ reason: 'SHUTTING_DOWN' });
  });
});
