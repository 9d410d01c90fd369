import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type SessionRecord, TaskRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { type Heartbeat, HeartbeatSchema, type OfferSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failure, type Reason } from '../../common/errors.ts';
import { HEARTBEAT_MS, NODE_FORGET_MS, NODE_LOST_MS } from '../../common/limits.ts';
import { canPrepare, canRun, type NodeState, Nodes, offers } from './nodes.ts';
import { checkOffered } from './offers.ts';
import { attemptLost, dispatched, moved, queuedSession, SessionState } from './session.ts';

const spec = create(TaskSpecSchema, { taskId: 't' });
const task = create(TaskRecordSchema, { taskId: 't', sessionPrefix: 's', numSamples: 100 });
const session = (i: number): SessionRecord => queuedSession(task, spec, i);
const on = (record: SessionRecord, nodeId = 'n'): SessionRecord =>
  dispatched(record, { nodeId, bootId: 'b' }, 0);
type HeartbeatInit = Exclude<MessageInitShape<typeof HeartbeatSchema>, Heartbeat>;
const beatOf = (over: HeartbeatInit = {}): Heartbeat =>
  create(HeartbeatSchema, {
    nodeId: 'n',
    bootId: 'b',
    backends: ['bubblewrap', 'process'],
    defaultBackend: 'bubblewrap',
    offers: [{ backend: 'bubblewrap', images: ['host', 'alpine'] }, { backend: 'process' }],
    prepareSlots: 2,
    runSlots: 2,
    readySlots: 1,
    evaluateSlots: 1,
    ...over,
  });

function nodeWith(...states: SessionState[]): NodeState {
  const nodes = new Nodes();
  const { node } = nodes.beat(beatOf(), 0, 0);
  for (const [i, state] of states.entries()) nodes.move(session(i), moved(on(session(i)), state, 0, {}), 0);
  return node;
}

describe('nodes', () => {
  const { PREPARING, READY, RUNNING, FINISHING } = SessionState;

  it('prepare within their slots, as much as can run or wait', () => {
    expect(canPrepare(nodeWith())).to.equal(true);
    expect(canPrepare(nodeWith(PREPARING))).to.equal(true);
    expect(canPrepare(nodeWith(PREPARING, PREPARING)), 'prepare slots').to.equal(false);
    expect(canPrepare(nodeWith(READY, READY))).to.equal(true);
    expect(canPrepare(nodeWith(READY, READY, READY)), 'two run slots and one to wait').to.equal(false);
    expect(canPrepare(nodeWith(RUNNING, RUNNING))).to.equal(true);
    expect(canPrepare(nodeWith(RUNNING, RUNNING, READY)), 'one may wait').to.equal(false);
    expect(canPrepare(nodeWith(RUNNING, RUNNING, PREPARING)), 'one will wait').to.equal(false);
    expect(canPrepare(nodeWith(FINISHING))).to.equal(true);
    expect(canPrepare(nodeWith(FINISHING, FINISHING)), 'twice the evaluate slots').to.equal(false);
  });

  it('prepare ahead for the runs that end meanwhile, as the pace of their own sessions tells', () => {
    const paced = (prepareMs: number, runMs: number, slots: HeartbeatInit): NodeState => {
      const nodes = new Nodes();
      const { node } = nodes.beat(beatOf({ evaluateSlots: 9, ...slots }), 0, 0);
      const prepared = moved(on(session(9)), READY, prepareMs, {});
      const begun = moved(prepared, RUNNING, prepareMs, {});
      nodes.move(on(session(9)), prepared, 0);
      nodes.move(prepared, begun, 0);
      nodes.move(begun, moved(begun, FINISHING, prepareMs + runMs, {}), 0);
      for (const i of [0, 1]) nodes.move(session(i), moved(on(session(i)), RUNNING, 0, {}), 0);
      return node;
    };
    const preparedAhead = (node: NodeState): number => {
      while (canPrepare(node)) node.preparing.add(`more-${node.preparing.size}`);
      return node.preparing.size;
    };
    const slots = { prepareSlots: 20, runSlots: 2, readySlots: 1 };
    expect(preparedAhead(paced(3_000, 1_000, slots)), 'one to wait, six that end').to.equal(7);
    expect(preparedAhead(paced(2, 1_000, slots)), 'prepared at once').to.equal(1);
    expect(preparedAhead(paced(3_000, 1_000, { ...slots, prepareSlots: 4 }))).to.equal(4);
    expect(preparedAhead(paced(3_000, 1_000, { ...slots, readySlots: 0 })), 'only for a free slot').to.equal(
      0,
    );
  });

  it('run what is ready within their slots', () => {
    expect(canRun(nodeWith(READY))).to.equal(true);
    expect(canRun(nodeWith(READY, RUNNING))).to.equal(true);
    expect(canRun(nodeWith(READY, RUNNING, RUNNING))).to.equal(false);
    expect(canRun(nodeWith(RUNNING))).to.equal(false);
  });

  it('are lost once when their heartbeats are overdue, and come back', () => {
    const nodes = new Nodes();
    const { node } = nodes.beat(beatOf(), 1_000, 0);
    expect(nodes.overdue(1_000 + NODE_LOST_MS)).to.deep.equal([]);
    expect(nodes.overdue(1_001 + NODE_LOST_MS)).to.deep.equal([node]);
    expect(nodes.overdue(1_002 + NODE_LOST_MS)).to.deep.equal([]);
    expect(canPrepare(node)).to.equal(false);
    expect(nodes.healthy).to.deep.equal([]);
    expect(nodes.beat(beatOf(), 20_000, 0).news).to.equal('back');
    expect(nodes.healthy).to.deep.equal([node]);
  });

  it('that come back as what was lost prepare from the next heartbeat on: what a connection held back comes at once', () => {
    const nodes = new Nodes();
    const { node } = nodes.beat(beatOf(), 0, 0);
    const lose = (): unknown => nodes.overdue(node.seenMs + NODE_LOST_MS + 1);
    lose();
    for (const at of [20_000, 20_001, 20_002]) {
      nodes.beat(beatOf(), at, 0);
      expect(canPrepare(node), `${at}`).to.equal(false);
    }
    expect(nodes.beat(beatOf({ bootId: 'later' }), 20_003, 0).news).to.equal('rebooted');
    expect(canPrepare(node), 'begun anew').to.equal(true);
    lose();
    nodes.beat(beatOf({ bootId: 'later' }), 40_000, 0);
    nodes.beat(beatOf({ bootId: 'later' }), 40_000 + HEARTBEAT_MS, 0);
    expect(canPrepare(node), 'it had not let go').to.equal(true);
  });

  it('that lost a sandbox prepare nothing before they are heard again', () => {
    const nodes = new Nodes();
    const { node } = nodes.beat(beatOf(), 0, 0);
    const lose = (reason: string): void => {
      const preparing = on(session(1));
      nodes.move(session(1), preparing, 0);
      nodes.move(preparing, attemptLost(preparing, failure(reason as Reason, 'why'), 3, 0), 0);
    };
    lose('PREPARE_FAILED');
    expect(canPrepare(node)).to.equal(true);
    lose('RUNTIME_LOST');
    expect(canPrepare(node), 'its manager may have ended').to.equal(false);
    nodes.beat(beatOf(), 1, 1);
    expect(canPrepare(node)).to.equal(true);
    lose('SHUTTING_DOWN');
    expect(canPrepare(node), 'it may be stopping').to.equal(false);
    nodes.beat(beatOf({ bootId: 'later' }), 2, 2);
    lose('RUNTIME_LOST');
    expect(canPrepare(node), 'it was lost with the boot before').to.equal(true);
  });

  it('tell when they are new and when they began anew', () => {
    const nodes = new Nodes();
    expect(nodes.beat(beatOf(), 0, 0).news).to.equal('joined');
    expect(nodes.beat(beatOf(), 0, 0).news).to.equal('none');
    expect(nodes.beat(beatOf({ bootId: 'c' }), 0, 0).news).to.equal('rebooted');
  });

  it('are one machine each: another of the same id counts when the first is silent for long, itself begun anew at once', () => {
    const nodes = new Nodes();
    const beat = (dataId: string, bootId: string, nowMs: number): string =>
      nodes.beat(beatOf({ dataId, bootId }), nowMs, nowMs).news;
    expect(beat('here', 'b', 0)).to.equal('joined');
    expect(beat('there', 'c', 1_000)).to.equal('taken');
    expect(nodes.get('n')?.heartbeat?.bootId).to.equal('b');
    expect(beat('here', 'b', 2_000)).to.equal('none');
    expect(beat('here', 'd', 3_000)).to.equal('rebooted');
    expect(beat('there', 'c', 4_000)).to.equal('taken');
    nodes.overdue(3_001 + NODE_LOST_MS);
    expect(beat('there', 'c', 3_002 + NODE_LOST_MS)).to.equal('rebooted');
    expect(beat('here', 'd', 3_003 + NODE_LOST_MS)).to.equal('taken');
    expect(beat('', 'e', 3_004 + NODE_LOST_MS), 'an older version tells no data').to.equal('rebooted');
  });

  it('that were stopped take nothing from then on, and another machine may be the node at once', () => {
    const nodes = new Nodes();
    const { node } = nodes.beat(beatOf({ dataId: 'here' }), 0, 0);
    expect(nodes.beat(beatOf({ dataId: 'there', leaving: true }), 500, 500).news, 'of another').to.equal(
      'taken',
    );
    expect(nodes.beat(beatOf({ dataId: 'here', leaving: true }), 1_000, 0).news).to.equal('left');
    expect(nodes.healthy).to.deep.equal([]);
    expect(canPrepare(node)).to.equal(false);
    expect(nodes.overdue(1_001 + NODE_LOST_MS), 'that is known').to.deep.equal([]);
    expect(nodes.beat(beatOf({ dataId: 'there', bootId: 'c' }), 2_000, 0).news).to.equal('rebooted');
    expect(nodes.healthy).to.deep.equal([node]);
  });

  it('are lost, too, when only a session names them, and forgotten when nothing does', () => {
    const nodes = new Nodes();
    const placed = on(session(0), 'silent');
    nodes.move(placed, placed, 0);
    expect(nodes.overdue(NODE_LOST_MS + 1).map(({ id }) => id)).to.deep.equal(['silent']);
    nodes.overdue(NODE_FORGET_MS + 1);
    expect([...nodes.all]).to.have.length(1);
    nodes.move(placed, session(0), 0);
    nodes.overdue(NODE_FORGET_MS + 1);
    expect([...nodes.all]).to.have.length(0);
  });

  it('offer what their heartbeat says', () => {
    const node = nodeWith();
    const needs = {
      ' ': true,
      'bubblewrap ': true,
      ' alpine': true,
      ' debian': false,
      'process ': true,
      'docker ': false,
      'mine/own.ts ': false,
    };
    for (const [need, has] of Object.entries(needs)) expect(offers(node, need), need).to.equal(has);
    expect(offers(node, 'process alpine')).to.equal(false);
    const bare = new Nodes().beat(beatOf({ backends: ['process'], defaultBackend: '' }), 0, 0).node;
    expect(offers(bare, ' ')).to.equal(false);
    expect(offers(bare, 'process ')).to.equal(true);
  });

  it('refuse at submit what none of them offers', () => {
    const bare = new Nodes().beat(beatOf({ backends: ['process'], defaultBackend: '' }), 0, 0).node;
    const of = (backend: string, image = '') => create(TaskSpecSchema, { runtime: { backend, image } });
    expect(() => checkOffered([], of('bubblewrap'))).to.not.throw();
    expect(() => checkOffered([bare, nodeWith()], of(''))).to.not.throw();
    expect(() => checkOffered([nodeWith()], of('bubblewrap', 'host'))).to.not.throw();
    expect(() => checkOffered([bare], of(''))).to.throw(/no node has a default runtime.*process/);
    expect(() => checkOffered([bare], of('bubblewrap'))).to.throw(/no node offers runtime bubblewrap/);
    expect(() => checkOffered([nodeWith()], of('', 'debian'))).to.throw(/image debian.*n has alpine, host/);
  });

  it('refuse an image that none has and none may fetch, naming what each has', () => {
    const docker = (nodeId: string, offer: MessageInitShape<typeof OfferSchema>): NodeState =>
      new Nodes().beat(
        beatOf({ nodeId, backends: ['docker'], offers: [{ backend: 'docker', ...offer }] }),
        0,
        0,
      ).node;
    const [bare, stocked] = [docker('bare', {}), docker('stocked', { images: ['python:3.12'] })];
    const of = (image: string) => create(TaskSpecSchema, { runtime: { backend: 'docker', image } });
    expect(() => checkOffered([nodeWith(), bare, stocked], of('python:3.12'))).to.not.throw();
    expect(() => checkOffered([nodeWith(), bare, stocked], of('pyhton:3.12'))).to.throw(
      'no node has image pyhton:3.12 for runtime docker, and none may fetch it: bare has none; stocked has python:3.12',
    );
    // Of bubblewrap here.
    expect(() => checkOffered([nodeWith(), bare], of('alpine'))).to.throw(/no node has image alpine/);
    expect(() =>
      checkOffered([bare, docker('fetching', { others: true })], of('pyhton:3.12')),
    ).to.not.throw();
    const full = docker('full', { images: Array.from({ length: 25 }, (_, i) => `one:${i + 10}`) });
    expect(() => checkOffered([full], of('two'))).to.throw(/one:29, and 5 more$/);
  });
});
