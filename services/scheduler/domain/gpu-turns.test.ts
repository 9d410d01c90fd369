import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { HeartbeatSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { GPU_PASSED_MS, keptFor, takesGpus } from './gpu-turns.ts';
import { type NodeState, Nodes } from './nodes.ts';
import { DispatchQueue, type QueueItem } from './queue.ts';

const item = (sessionId: string, gpus: number, over: Partial<QueueItem> = {}): QueueItem => ({
  ...{ sessionId, taskId: sessionId, sampleIndex: 0, queue: 'default', rank: 0, order: 1, taskCap: 0 },
  ...{ need: `docker${gpus > 0 ? `  ${gpus}` : ' '}`, lostOn: [], notBeforeMs: 0, ...over },
});

/** A node of four GPUs, which containers have from their creation on. */
function nodeOf(nodeId: string, gpusFromCreation = true): NodeState {
  const offers = [{ backend: 'docker', gpusClaimed: true, gpusFromCreation }];
  const heartbeat = create(HeartbeatSchema, { nodeId, bootId: 'b', backends: ['docker'], offers, gpus: 4 });
  return new Nodes().beat(heartbeat, 0, 0).node;
}

const hold = (node: NodeState, sessionId: string, gpus: number): void => {
  node.gpuNeeds.set(sessionId, item(sessionId, gpus).need);
};

describe("sessions' turns at GPUs", () => {
  const queued = (...items: QueueItem[]): DispatchQueue => {
    const queue = new DispatchQueue();
    for (const one of items) queue.push(one);
    return queue;
  };

  it('come to one of many that smaller ones go past, after a while', () => {
    const [many, few] = [item('many', 4), item('few', 1, { order: 2 })];
    const node = nodeOf('n');
    const queue = queued(many, few);
    hold(node, 'before', 1);
    const takes = (one: QueueItem, nowMs: number): boolean =>
      takesGpus(node, one, 'prepare', { queue, open: [node], nowMs });
    expect(takes(many, 0)).to.equal(false);
    expect(takes(few, GPU_PASSED_MS - 1), 'it may go meanwhile').to.equal(true);
    expect(takes(few, GPU_PASSED_MS)).to.equal(false);
    expect(takes(item('sooner', 1, { rank: -1 }), GPU_PASSED_MS), 'what goes before it anyway').to.equal(
      true,
    );
    expect(takes(item('none', 0, { order: 2 }), GPU_PASSED_MS), 'without GPUs').to.equal(true);
    expect(keptFor(node, 'prepare', { queue, nowMs: GPU_PASSED_MS })).to.equal(many);
    node.gpuNeeds.delete('before');
    expect(takes(many, GPU_PASSED_MS)).to.equal(true);
    queue.drop('many');
    expect(takes(few, GPU_PASSED_MS), 'it is gone').to.equal(true);
  });

  it('are kept on one node, and only while nothing else keeps that session back', () => {
    const many = item('many', 4, { taskId: 't', taskCap: 1 });
    const few = item('few', 1, { order: 2 });
    const open = [nodeOf('a'), nodeOf('b')];
    const queue = queued(many, few);
    for (const node of open) hold(node, `on-${node.id}`, 1);
    const takes = (one: QueueItem, nowMs: number): boolean[] =>
      open.map((node) => takesGpus(node, one, 'prepare', { queue, open, nowMs }));
    expect(takes(many, 0)).to.deep.equal([false, false]);
    expect(takes(few, GPU_PASSED_MS)).to.deep.equal([false, true]);
    queue.started('sibling', { taskId: 't', queue: 'default' });
    expect(takes(few, GPU_PASSED_MS), 'its task is at its cap').to.deep.equal([true, true]);
  });

  it('come to one that is ready in the same way', () => {
    const [many, few] = [item('many', 4), item('few', 1, { order: 2 })];
    const node = nodeOf('n', false);
    hold(node, 'before', 1);
    node.running.add('before');
    for (const one of [many, few]) {
      node.ready.add(one.sessionId);
      node.gpuNeeds.set(one.sessionId, one.need);
    }
    const takes = (one: QueueItem, nowMs: number): boolean =>
      takesGpus(node, one, 'run', { queue: new DispatchQueue(), open: [], nowMs });
    expect([takes(many, 0), takes(few, 1)]).to.deep.equal([false, true]);
    expect([takes(many, GPU_PASSED_MS), takes(few, GPU_PASSED_MS)]).to.deep.equal([false, false]);
    // What waits to be prepared there does not count anew for that.
    const waiting = { queue: queued(item('third', 4, { order: 3 })), open: [node] };
    takesGpus(node, item('third', 4, { order: 3 }), 'prepare', { ...waiting, nowMs: GPU_PASSED_MS });
    expect(takes(few, GPU_PASSED_MS)).to.equal(false);
    node.ready.delete('many');
    node.gpuNeeds.delete('many');
    expect(takes(few, GPU_PASSED_MS)).to.equal(true);
  });
});
