// DrainNode: keeps new sessions away from a node, or lets them come again; answers when that is committed.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { HEARTBEAT_MS } from '../../common/limits.ts';
import type { SchedulerContext } from '../context.ts';
import type { NodeState } from '../domain/nodes.ts';
import { drainChange } from '../domain/state.ts';
import { nodeView } from '../domain/view.ts';
import * as events from '../events.ts';

/** After a take-over, each node that lives is heard of within this. */
const HEARD_MS = 3 * HEARTBEAT_MS;
const LOOK_MS = 20;

export function drainNode(ctx: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'drainNode'> {
  const { board, log } = ctx;
  return {
    async drainNode({ nodeId, undo }) {
      const node = await heard(ctx, nodeId);
      board.journal.admit();
      await board.journal.within(board.journal.propose(drainChange(nodeId, !undo)));
      events.nodeDrained(log, nodeId, !undo);
      board.onMoved();
      return { node: nodeView(node, board.state.isDraining(nodeId)) };
    },
  };
}

/** Of a node that lives, the heartbeat may still be to come after a take-over. Throws NOT_FOUND. */
async function heard({ board, sinceMs, signal }: SchedulerContext, nodeId: string): Promise<NodeState> {
  for (;;) {
    const node = board.nodes.get(nodeId);
    if (node !== undefined) return node;
    if (performance.now() - sinceMs > HEARD_MS) {
      throw new PolarError('NOT_FOUND', `no node ${nodeId} was heard of`);
    }
    signal.throwIfAborted();
    await sleep(LOOK_MS, signal);
  }
}
