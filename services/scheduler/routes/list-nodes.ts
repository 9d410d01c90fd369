// ListNodes: the nodes that have sent a heartbeat or that a session names.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { SchedulerContext } from '../context.ts';
import { nodeView } from '../domain/view.ts';

export function listNodes({
  board,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'listNodes'> {
  return {
    listNodes: () => ({
      nodes: [...board.nodes.all]
        .map((node) => nodeView(node, board.state.isDraining(node.id)))
        .sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1)),
    }),
  };
}
