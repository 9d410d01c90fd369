import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type TaskSpec, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type SessionRecord, TaskRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { HeartbeatSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { WaitReason } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { Engines } from './engines.ts';
import { Nodes } from './nodes.ts';
import { DispatchQueue, type QueueItem } from './queue.ts';
import { dispatched, moved, queuedSession, SessionState, sessionIdOf } from './session.ts';
import { Shares } from './shares.ts';
import { needOf } from './task.ts';
import { type Surroundings, waitingOf, waitingsOf } from './waiting.ts';

type SpecInit = Exclude<MessageInitShape<typeof TaskSpecSchema>, TaskSpec>;
const specOf = (over: SpecInit = {}): TaskSpec => create(TaskSpecSchema, { taskId: 't', ...over });
const task = create(TaskRecordSchema, { taskId: 't', sessionPrefix: 's', numSamples: 9 });
const session = (i: number): SessionRecord => queuedSession(task, specOf(), i);
const on = (i: number, state: SessionState): SessionRecord =>
  moved(dispatched(session(i), { nodeId: 'n', bootId: 'b' }, 0), state, 0, {});

function surroundings(over: Partial<Surroundings> = {}): Surroundings {
  const rules = [{ name: 'small', weight: 1, maxRunning: 1 }];
  const engines = new Engines([
    { nodeId: 'n', servers: ['http://e'], maxSessions: 1, minSessions: undefined },
  ]);
  return {
    ...{ nodes: new Nodes(), queue: new DispatchQueue(new Shares(rules)), engines },
    ...{ isDraining: () => false, logFull: false, paused: false, nowMs: 1_000 },
    ...over,
  };
}

/** A node with two slots of each kind. */
function addNode({ nodes }: Surroundings): void {
  const slots = { prepareSlots: 2, runSlots: 2, readySlots: 2, evaluateSlots: 2 };
  nodes.beat(
    create(HeartbeatSchema, {
      ...{ nodeId: 'n', bootId: 'b', backends: ['bubblewrap'], defaultBackend: 'bubblewrap', ...slots },
    }),
    0,
    0,
  );
}

function push({ queue }: Surroundings, i: number, spec: TaskSpec, over: Partial<QueueItem> = {}): void {
  queue.push({
    ...{ sessionId: sessionIdOf('s', i), taskId: 't', sampleIndex: i, queue: 'default', rank: 0, order: 0 },
    ...{ taskCap: 0, need: needOf(spec), lostOn: [], notBeforeMs: 0, ...over },
  });
}

describe('why a session waits', () => {
  const spec = specOf();
  const why = (around: Surroundings, i = 0, of = spec): string | undefined => {
    const waiting = waitingOf(session(i), of, around);
    return waiting && WaitReason[waiting.reason];
  };

  it('for nodes: none, none that fits, all draining', () => {
    const around = surroundings({ isDraining: () => true });
    push(around, 0, spec);
    expect(why(around)).to.equal('NO_NODE');
    addNode(around);
    expect(why(around)).to.equal('NODES_DRAINING');
    const other = specOf({ runtime: { backend: 'docker', image: 'x' } });
    push(around, 1, other);
    expect(why(around, 1, other)).to.equal('NO_NODE_FITS');
    expect(waitingOf(session(1), other, around)?.message).to.equal(
      'none of 1 healthy node (n) has runtime docker with image x',
    );
  });

  it('for its next attempt', () => {
    const around = surroundings();
    push(around, 0, spec, { notBeforeMs: 2_500 });
    const waiting = waitingOf(session(0), spec, around);
    expect(waiting?.reason).to.equal(WaitReason.RETRY_PAUSE);
    expect(waiting?.untilTime).to.include({ seconds: 2n, nanos: 500_000_000 });
  });

  it('for caps of its task and of its queue', () => {
    const around = surroundings();
    addNode(around);
    push(around, 0, spec, { taskCap: 1, queue: 'small' });
    expect(why(around)).to.equal('TURN');
    around.queue.started('other', { taskId: 'other', queue: 'small' });
    expect(why(around)).to.equal('QUEUE_CAP');
    around.queue.started('same', { taskId: 't', queue: 'default' });
    expect(why(around)).to.equal('TASK_CAP');
  });

  it('for a full node, for its turn, for the log', () => {
    const around = surroundings();
    addNode(around);
    for (const i of [0, 1, 2]) push(around, i, spec);
    expect(waitingOf(session(2), spec, around)).to.include({ reason: WaitReason.TURN, ahead: 2 });
    for (const i of [3, 4]) around.nodes.move(session(i), on(i, SessionState.PREPARING), 0);
    expect(waitingOf(session(2), spec, around)).to.include({ reason: WaitReason.NODES_FULL, ahead: 2 });
    expect(why({ ...around, logFull: true })).to.equal('STATE_LOG');
  });

  it('is told of a page by one look at all that wait, and by none where that is not asked for', () => {
    let looks = 0;
    const queue = new (class extends DispatchQueue {
      override ahead(items: readonly QueueItem[]): ReadonlyMap<string, number> {
        looks++;
        return super.ahead(items);
      }
    })();
    const around = surroundings({ queue });
    for (const i of [0, 1, 2, 3]) push(around, i, spec);
    const page = [1, 3].map(session);
    expect(Object.values(waitingsOf(page, spec, around)).map(({ reason }) => reason)).to.deep.equal([
      ...[WaitReason.NO_NODE, WaitReason.NO_NODE],
    ]);
    expect(looks).to.equal(0);
    addNode(around);
    const told = waitingsOf([...page, on(4, SessionState.PREPARING)], spec, around);
    expect(Object.entries(told).map(([id, { ahead }]) => [id, ahead])).to.deep.equal([
      [sessionIdOf('s', 1), 1],
      [sessionIdOf('s', 3), 3],
    ]);
    expect(looks).to.equal(1);
  });

  it('for a run slot, for its engine, and while calls are held', () => {
    const around = surroundings();
    addNode(around);
    const ready = on(0, SessionState.READY);
    around.nodes.move(session(0), ready, 0);
    around.nodes.move(session(1), on(1, SessionState.RUNNING), 0);
    expect(waitingOf(ready, spec, around)?.reason).to.equal(WaitReason.ENGINE_CAP);
    const rule = { nodeId: 'n', servers: ['http://e'], maxSessions: 2, minSessions: 1 };
    const pressed = new Engines([rule]);
    pressed.told('n', { callsWaiting: 5, cacheUse: 0 }, 0, (id) => around.nodes.get(id));
    const told = waitingOf(ready, spec, { ...around, engines: pressed });
    expect(told).to.include({ reason: WaitReason.ENGINE_PRESSURE });
    expect(told?.message).to.equal('the engine http://e bears 1 session at the moment, of max_sessions 2');
    around.nodes.move(session(2), on(2, SessionState.RUNNING), 0);
    const waiting = waitingOf(ready, spec, around);
    expect(waiting).to.include({ reason: WaitReason.RUN_SLOT });
    expect(waiting?.message).to.equal('2 of 2 run slots of node n are taken');
    const running = on(1, SessionState.RUNNING);
    expect(waitingOf(running, spec, around)).to.equal(undefined);
    expect(waitingOf(running, spec, { ...around, paused: true })?.reason).to.equal(WaitReason.POLICY_PAUSED);
  });

  it('is not asked of one that is at work or that has ended', () => {
    const around = surroundings({ paused: true });
    expect(waitingOf(on(0, SessionState.PREPARING), spec, around)).to.equal(undefined);
    expect(waitingOf(on(0, SessionState.ENDED), spec, around)).to.equal(undefined);
    expect(why(around)).to.equal(undefined);
  });
});
