import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type SessionRecord, TaskRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { HeartbeatSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failure, type Reason } from '../../common/errors.ts';
import { NODE_FAILURES_MAX, NODE_PAUSE_MAX_MS, NODE_PAUSE_MS, RUN_FAILURES_KEPT_MS } from './failing.ts';
import { canPrepare, type NodeState, Nodes } from './nodes.ts';
import { attemptLost, dispatched, moved, queuedSession, SessionState } from './session.ts';

const task = create(TaskRecordSchema, { taskId: 't', sessionPrefix: 's', numSamples: 100 });

/** A node with four slots of each kind, and a clock that is set by hand. */
class Bench {
  readonly nodes = new Nodes();
  readonly node: NodeState;
  readonly paused: string[] = [];
  nowMs = 1_000;
  #sessions = 0;

  constructor() {
    this.node = this.beat('b');
    this.nodes.onPaused = ({ failures }) => this.paused.push(failures.reason);
  }

  beat(bootId: string): NodeState {
    const slots = { prepareSlots: 4, runSlots: 4, readySlots: 4, evaluateSlots: 4 };
    return this.nodes.beat(create(HeartbeatSchema, { nodeId: 'n', bootId, ...slots }), 0, 0).node;
  }

  begin(): SessionRecord {
    const queued = queuedSession(task, create(TaskSpecSchema), this.#sessions++);
    const place = { nodeId: 'n', bootId: this.node.heartbeat?.bootId ?? '' };
    return this.#move(queued, dispatched(queued, place, this.nowMs));
  }

  to(record: SessionRecord, state: SessionState): SessionRecord {
    return this.#move(record, moved(record, state, this.nowMs, {}));
  }

  /** After its first attempt, or its last one. */
  lose(record: SessionRecord, reason: Reason = 'SANDBOX_FAILED', maxAttempts = 3): void {
    this.#move(record, attemptLost(record, failure(reason, 'why'), maxAttempts, this.nowMs));
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.nodes.resume(this.nowMs);
  }

  /** How long it takes until the node may prepare. */
  pauseMs(): number {
    const startMs = this.nowMs;
    while (!canPrepare(this.node)) this.pass(100);
    return this.nowMs - startMs;
  }

  #move(before: SessionRecord, after: SessionRecord): SessionRecord {
    this.nodes.move(before, after, 0);
    return after;
  }
}

describe('a node that fails', () => {
  const { READY, RUNNING, FINISHING } = SessionState;

  it('several times in a row is paused, ever longer, and not for ever', () => {
    const bench = new Bench();
    const pauses = Array.from({ length: 10 }, () => {
      bench.lose(bench.begin());
      return bench.pauseMs();
    });
    expect(pauses.slice(0, NODE_FAILURES_MAX - 1)).to.deep.equal([0, 0]);
    expect(pauses.slice(NODE_FAILURES_MAX - 1)).to.deep.equal(
      [1, 2, 4, 8, 16, 30, 30, 30].map((seconds) => seconds * NODE_PAUSE_MS),
    );
    expect(pauses.at(-1)).to.equal(NODE_PAUSE_MAX_MS);
    expect(bench.paused).to.have.length(8);
  });

  it('in runs is paused, too, though all sandboxes become ready there', () => {
    const bench = new Bench();
    const lost = (): number => {
      bench.lose(bench.to(bench.to(bench.begin(), READY), RUNNING), 'HARNESS_INSTALL_FAILED');
      return bench.pauseMs();
    };
    const pauses = [1, 2, 3, 4, 5].map(lost);
    expect(pauses).to.deep.equal([0, 0, NODE_PAUSE_MS, 2 * NODE_PAUSE_MS, 4 * NODE_PAUSE_MS]);
    bench.to(bench.begin(), READY);
    expect(bench.node.failures.count, 'a sandbox that is ready says nothing of runs').to.equal(5);
    bench.pass(RUN_FAILURES_KEPT_MS);
    expect(bench.node.failures.count, 'what has run for so long goes well').to.equal(0);
    expect([1, 2, 3].map(lost)).to.deep.equal([0, 0, NODE_PAUSE_MS]);
    bench.to(bench.to(bench.to(bench.begin(), READY), RUNNING), FINISHING);
    expect(bench.node.failures.count, 'a run has ended well').to.equal(0);
  });

  it('in runs whose engine is away or whose executor began anew or was stopped goes on with the next that is ready', () => {
    for (const [reason, count] of [
      ['ENGINE_UNAVAILABLE', 1],
      ['EXECUTOR_LOST', 1],
      ['SHUTTING_DOWN', 0],
    ] as const) {
      const bench = new Bench();
      for (let i = 0; i < 2 * NODE_FAILURES_MAX; i++)
        bench.lose(bench.to(bench.to(bench.begin(), READY), RUNNING), reason);
      expect(bench.node.failures.count, reason).to.equal(count);
    }
  });

  it('is tried with one session at a time after a pause, until something goes well there', () => {
    for (const goesWell of [
      (bench: Bench, record: SessionRecord) => bench.to(record, READY),
      (bench: Bench, record: SessionRecord) => bench.to({ ...bench.to(record, RUNNING) }, FINISHING),
    ]) {
      const bench = new Bench();
      const long = bench.begin();
      bench.lose(bench.begin());
      for (const one of [bench.begin(), bench.begin()]) bench.lose(one);
      bench.pass(NODE_PAUSE_MS);
      expect(canPrepare(bench.node), 'one is being prepared').to.equal(false);
      goesWell(bench, long);
      expect(canPrepare(bench.node)).to.equal(true);
      bench.begin();
      expect(canPrepare(bench.node)).to.equal(true);
    }
  });

  it('with all that it has at once has failed so often as its pause is long', () => {
    const bench = new Bench();
    const all = [1, 2, 3, 4].map(() => bench.begin());
    for (const [i, one] of all.entries()) bench.lose(i < 2 ? one : bench.to(one, RUNNING));
    expect(bench.node.failures.count).to.equal(NODE_FAILURES_MAX);
    expect(bench.pauseMs()).to.equal(NODE_PAUSE_MS);
  });

  it('is one whose last attempts of sessions fail, too', () => {
    const bench = new Bench();
    for (let i = 0; i < NODE_FAILURES_MAX; i++) bench.lose(bench.begin(), 'RUNTIME_LOST', 1);
    expect(bench.paused).to.deep.equal(['RUNTIME_LOST']);
  });

  it('is none that was lost, that began anew, or whose tasks do not end in time', () => {
    const bench = new Bench();
    for (let i = 0; i < 9; i++) bench.lose(bench.begin(), 'PREPARE_TIMEOUT');
    for (let i = 0; i < 2; i++) bench.lose(bench.begin());
    const [older, other] = [bench.begin(), bench.begin()];
    bench.beat('later');
    bench.lose(older);
    expect(bench.node.failures.count).to.equal(0);
    bench.nodes.overdue(1e9);
    for (const one of [other, bench.begin(), bench.begin(), bench.begin()]) bench.lose(one, 'NODE_LOST');
    expect(bench.node.failures.count).to.equal(0);
  });
});
