// DrainNode: keeps new sessions away from a node, or lets them come again; answers when that is committed.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { SchedulerContext } from '../context.ts';
import { drainChange } from '../domain/state.ts';
import { nodeView } from '../domain/view.ts';
import * as events from '../events.ts';

export function drainNode({
  board,
  log,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'drainNode'> {
  return {
    async drainNode({ nodeId, undo }) {
      const node = board.nodes.get(nodeId);
      if (node === undefined) throw new PolarError('NOT_FOUND', `no node ${nodeId} was heard of`);
      board.journal.admit();
      await board.journal.within(board.journal.propose(drainChange(nodeId, !undo)));
      events.nodeDrained(log, nodeId, !undo);
      board.onMoved();
      return { node: nodeView(node, board.state.isDraining(nodeId)) };
    },
  };
}
