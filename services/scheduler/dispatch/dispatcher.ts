// Gives slots: queued sessions to nodes that can prepare them, ready ones to free run slots. And takes attempts back:
// those of nodes that are lost, began anew or were stopped; those past a deadline, see deadlines.ts.
import type { Failure } from '../../../gen/ts/polar/common/v1/failure_pb.js';
import type { AttemptRef, Heartbeat } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../common/clock.ts';
import { failure } from '../../common/errors.ts';
import { SCHEDULER_TICK_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { Engines } from '../domain/engines.ts';
import { takesGpus } from '../domain/gpu-turns.ts';
import { canPrepare, canRun, loadOf, type NodeState, sessionsOn } from '../domain/nodes.ts';
import { mayTake } from '../domain/placement.ts';
import type { QueueItem } from '../domain/queue.ts';
import { dispatched, isOpen, needsSandbox, running, SessionState, sessionOf } from '../domain/session.ts';
import * as events from '../events.ts';
import { type Board, type Found, itemOf } from './board.ts';
import { unixMs } from './clock.ts';
import type { Deadlines } from './deadlines.ts';

export class Dispatcher {
  readonly #board: Board;
  readonly #log: Logger;
  readonly #deadlines: Deadlines;
  readonly #engines: Engines;
  #scheduled = false;

  constructor(board: Board, log: Logger, deadlines: Deadlines, engines: Engines) {
    this.#board = board;
    this.#log = log;
    this.#deadlines = deadlines;
    this.#engines = engines;
    board.onMoved = () => this.#soon();
    board.nodes.onPaused = (node) => events.nodePaused(log, node);
  }

  /** Looks at time until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(SCHEDULER_TICK_MS, signal);
      if (signal.aborted) return;
      for (const node of this.#board.nodes.overdue(performance.now())) this.#nodeLost(node);
      this.#deadlines.check(unixMs());
      this.#board.nodes.resume(unixMs());
      this.#dispatch();
    }
  }

  /** A heartbeat came. Returns those of its attempts that are nobody's any more, by committed state; undefined: another is the node. */
  beat(heartbeat: Heartbeat): AttemptRef[] | undefined {
    const { node, news } = this.#board.nodes.beat(heartbeat, performance.now(), Date.now());
    if (news !== 'none') events.nodeSeen(this.#log, heartbeat, news);
    if (news === 'taken') return undefined;
    if (news === 'joined' || news === 'rebooted') this.#takeFromOlderBoots(node, heartbeat);
    if (news === 'left') this.#takeAll(node, failure('SHUTTING_DOWN', `node ${node.id} was stopped`));
    this.#soon();
    return heartbeat.attempts.filter((ref) => !this.#isLive(ref, heartbeat));
  }

  #isLive(ref: AttemptRef, { nodeId, bootId }: Heartbeat): boolean {
    const found = this.#board.state.find(ref.sessionId);
    if (found === undefined) return false;
    const record = this.#board.state.session(found.task, found.sampleIndex);
    const { attempt, nodeId: itsNode } = sessionOf(record);
    return (
      attempt === ref.attempt &&
      itsNode === nodeId &&
      record.bootId === bootId &&
      needsSandbox(record, found.task.spec)
    );
  }

  #takeFromOlderBoots(node: NodeState, { bootId, nodeId }: Heartbeat): void {
    for (const found of this.#withSandboxOn(node)) {
      if (found.record.bootId === bootId) continue;
      const why = failure('RUNTIME_LOST', `node ${nodeId} began anew and has removed its sandboxes`);
      this.#board.lose(found, why);
    }
  }

  #nodeLost(node: NodeState): void {
    const why = failure('NODE_LOST', `node ${node.id} sends no heartbeats: is its runtime-prewarm running?`);
    events.nodeLost(this.#log, node.id, this.#takeAll(node, why));
  }

  /** Returns how many. */
  #takeAll(node: NodeState, why: Failure): number {
    const open = this.#sessionsOn(node).filter(({ record }) => isOpen(record));
    const lost = [...this.#withSandboxOn(node), ...open];
    for (const found of lost) this.#board.lose(found, why);
    return lost.length;
  }

  #withSandboxOn(node: NodeState): Found[] {
    return this.#sessionsOn(node).filter(({ record, task }) => needsSandbox(record, task.spec));
  }

  #sessionsOn(node: NodeState): Found[] {
    return sessionsOn(node)
      .map((id) => this.#board.find(id))
      .filter((found) => found !== undefined)
      .filter(({ record }) => sessionOf(record).nodeId === node.id);
  }

  /** Once for all that happens in this turn of the event loop. */
  #soon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#dispatch();
    });
  }

  #dispatch(): void {
    const { nodes, queue, journal, state } = this.#board;
    const healthy = nodes.healthy;
    // Nodes of one engine share its places: what is ready on them is one row.
    const rows = Map.groupBy(healthy, (node) => this.#engines.of(node.id) ?? node);
    for (const row of rows.values()) while (this.#startRun(row));
    const open = healthy.filter((node) => !state.isDraining(node.id));
    let able = open.filter(canPrepare);
    while (able.length > 0 && queue.size > 0 && !journal.full) {
      able.sort((a, b) => loadOf(a) - loadOf(b));
      able = able.filter((node) => this.#startPrepare(node, open) && canPrepare(node));
    }
  }

  /** The one that was ready first has the turn of its queue; of those of that queue, the first by rank goes. */
  #nextReady(nodes: readonly NodeState[]): Found | undefined {
    const ready = nodes
      .flatMap((node) => [...node.ready])
      .map((id) => this.#board.find(id))
      .filter((found) => found !== undefined)
      .map((found) => ({ found, item: itemOf(found.task, found.record) }))
      .filter(({ found, item }) => this.#mayRun(found, item));
    const [one, ...others] = ready;
    if (one === undefined) return undefined;
    const first = others.reduce((a, b) => (b.found.record.stateMs < a.found.record.stateMs ? b : a), one);
    const same = ready.filter(({ item }) => item.queue === first.item.queue);
    return same.reduce((best, next) => (next.item.rank < best.item.rank ? next : best), first).found;
  }

  #mayRun({ record }: Found, item: QueueItem): boolean {
    const { nodes, queue } = this.#board;
    const node = nodes.get(sessionOf(record).nodeId);
    return node !== undefined && takesGpus(node, item, 'run', { queue, open: [], nowMs: unixMs() });
  }

  /** One more run on nodes that share an engine, or on one that shares none; false: none can begin. */
  #startRun(nodes: readonly NodeState[]): boolean {
    const able = nodes.filter(canRun);
    const [node] = able;
    if (node === undefined || this.#board.journal.full) return false;
    if (this.#engines.full(node.id, (id) => this.#board.nodes.get(id)) !== undefined) return false;
    const found = this.#nextReady(able);
    if (found === undefined) return false;
    this.#board.decide(found, running(found.record, unixMs()));
    return true;
  }

  #startPrepare(node: NodeState, open: readonly NodeState[]): boolean {
    const { queue } = this.#board;
    const around = { queue, open, nowMs: unixMs() };
    const item = queue.take(around.nowMs, (waiting) => {
      return mayTake(node, waiting, open) && takesGpus(node, waiting, 'prepare', around);
    });
    const bootId = node.heartbeat?.bootId;
    if (item === undefined || bootId === undefined) return false;
    const found = this.#board.find(item.sessionId);
    if (found !== undefined && sessionOf(found.record).state === SessionState.QUEUED) {
      this.#board.decide(found, dispatched(found.record, { nodeId: node.id, bootId }, unixMs()));
    }
    return true;
  }
}
