// Waiting for the nodes of a mesh without a command each time, which would take the machine from what is starting.
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { readTopology } from '../../services/common/config/topology.ts';
import { eventually } from './eventually.ts';

/** So many nodes of a topology file's scheduler send heartbeats. */
export async function nodesUp(topology: string, count: number): Promise<void> {
  const client = createServiceClient(RolloutService, readTopology(topology).rollout.public_url);
  const up = async (): Promise<boolean> => {
    const { nodes } = await client.listNodes({});
    return nodes.filter(({ healthy }) => healthy).length >= count;
  };
  await eventually(
    () => `${count} nodes`,
    () => up().catch(() => false),
    60_000,
  );
}
