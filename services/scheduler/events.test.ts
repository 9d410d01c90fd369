import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import type { Logger } from 'pino';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { type SessionRecord, TaskRecordSchema } from '../../gen/ts/polar/event/v1/state_pb.js';
import { failure } from '../common/errors.ts';
import { attemptLost, dispatched, ended, queuedSession, retried } from './domain/session.ts';
import type { TaskState } from './domain/state.ts';
import { sessionChanged } from './events.ts';

const record = create(TaskRecordSchema, { taskId: 't', sessionPrefix: 's', numSamples: 1 });
const began = dispatched(
  queuedSession(record, create(TaskSpecSchema), 0),
  { nodeId: 'node-1', bootId: 'b' },
  0,
);
const why = failure('NODE_LOST', 'no heartbeats');

/** The level, the fields and the message of what is told. */
function told(before: SessionRecord, after: SessionRecord): unknown[] {
  const lines: unknown[][] = [];
  const level = (name: string) => (fields: object, message: string) =>
    void lines.push([name, fields, message]);
  const log = { info: level('info'), warn: level('warn'), debug: level('debug') } as unknown as Logger;
  sessionChanged(log, { task: {} as TaskState, before, after });
  return lines[0] ?? [];
}

describe('what the log of the scheduler tells of a session', () => {
  it('is the node on which an attempt was lost', () => {
    const [level, fields, message] = told(began, attemptLost(began, why, 3, 0));
    expect([level, message]).to.deep.equal(['warn', 'attempt lost']);
    expect(fields).to.include({ node_id: 'node-1', attempt: 1, reason: 'NODE_LOST', from: 'PREPARING' });
  });

  it('is a retry, and no attempt that is lost, where an ended one goes again', () => {
    const over = ended(began, Outcome.INFRASTRUCTURE_ERROR, 0, why);
    const [level, fields, message] = told(over, retried(over, 'g1', 0));
    expect([level, message]).to.deep.equal(['info', 'session goes again on request']);
    expect(fields).not.to.have.property('reason');
  });
});
