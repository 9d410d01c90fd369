import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type SessionRecord, TaskRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { HeartbeatSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failure, type Reason } from '../../common/errors.ts';
import { type NodeState, Nodes } from './nodes.ts';
import { lostOn, placesFor } from './placement.ts';
import { attemptLost, dispatched, queuedSession, retried } from './session.ts';

const task = create(TaskRecordSchema, { taskId: 't', sessionPrefix: 's', numSamples: 1 });
const queued = queuedSession(task, create(TaskSpecSchema), 0);
const begunOn = (record: SessionRecord, nodeId: string): SessionRecord =>
  dispatched(record, { nodeId, bootId: 'b' }, 0);
const lost = (record: SessionRecord, nodeId: string, reason: Reason = 'SANDBOX_FAILED'): SessionRecord =>
  attemptLost(begunOn(record, nodeId), failure(reason, 'why'), 9, 0);

function node(nodeId: string, backend = 'bubblewrap'): NodeState {
  const offer = { backends: [backend], defaultBackend: backend, offers: [{ backend }] };
  return new Nodes().beat(create(HeartbeatSchema, { nodeId, bootId: 'b', ...offer }), 0, 0).node;
}

describe('places of a session', () => {
  const places = (on: readonly string[], open: readonly NodeState[], need = 'bubblewrap '): string[] =>
    placesFor({ need, lostOn: on }, open).map(({ id }) => id);

  it('are not where it was lost, while it fits elsewhere', () => {
    const open = [node('a'), node('b'), node('c', 'process')];
    expect(places([], open)).to.deep.equal(['a', 'b']);
    expect(places(['a'], open)).to.deep.equal(['b']);
    expect(places(['a', 'b'], open), 'nowhere else').to.deep.equal(['a', 'b']);
    expect(places(['a'], open.slice(0, 1)), 'the other is drained or lost').to.deep.equal(['a']);
    expect(places(['c'], open, 'process '), 'none of the others fits').to.deep.equal(['c']);
  });

  it('follow from its attempts, until it goes again on request', () => {
    expect(lostOn(queued)).to.deep.equal([]);
    expect(lostOn(begunOn(queued, 'a'))).to.deep.equal([]);
    const twice = lost(lost(lost(queued, 'b'), 'a'), 'b');
    expect(lostOn(twice)).to.deep.equal(['a', 'b']);
    expect(lostOn(lost(twice, 'c', 'SHUTTING_DOWN')), 'that one was stopped').to.deep.equal(['a', 'b']);
    expect(lostOn(retried(twice, 'g1', 0))).to.deep.equal([]);
    expect(lostOn(lost(retried(twice, 'g1', 0), 'c'))).to.deep.equal(['c']);
  });
});
