// polar serve_rollout and polar serve_gateway: the services of one machine in the foreground.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { EXIT } from '../../../services/common/exit-codes.ts';
import { type Arguments, type Command, textFlag, UsageError } from '../arguments.ts';
import { environment, inherited } from '../config.ts';
import { startChild } from '../mesh/child.ts';
import { mainOf, NODE_SERVICES, nodeFlagsOf, type ServiceName } from '../services.ts';
import { topologyOf } from '../topology-file.ts';

export const serveRollout: Command = {
  name: 'serve_rollout',
  summary: 'run scheduler and reconstructor in the foreground',
  operands: [],
  flags: {},
  examples: ['polar serve_rollout -c topology.yaml'],
  run: (args) => serveAll(['scheduler', 'reconstructor'], args, undefined),
};

export const serveGateway: Command = {
  name: 'serve_gateway',
  summary: "run a node's services in the foreground",
  operands: [],
  flags: {
    'node-id': { type: 'string', value: 'ID', help: 'the node of the topology; needed where it has several' },
  },
  examples: ['polar serve_gateway -c topology.yaml --node-id node-1'],
  run: (args) => serveAll(NODE_SERVICES, args, textFlag(args, 'node-id')),
};

/** Run services with their output on this terminal until a signal comes or one of them ends; then end the others. */
export async function serveAll(
  names: readonly ServiceName[],
  args: Arguments,
  nodeId: string | undefined,
): Promise<number> {
  const { nodes } = topologyOf(args).gateway;
  if (names.some((name) => NODE_SERVICES.includes(name))) checkNode(nodes, nodeId);
  const topology = textFlag(args, 'config');
  const { cacheDir } = environment;
  // Else each start compiles all anew, for as much CPU again. Set-up makes the folder.
  const keepsCompiled = !inherited['NODE_COMPILE_CACHE'] && existsSync(cacheDir);
  const env = {
    ...inherited,
    ...(topology !== undefined && { POLAR_TOPOLOGY: topology }),
    ...(nodeId !== undefined && { POLAR_GATEWAY_NODE_ID: nodeId }),
    POLAR_LIFELINE: 'stdin',
    ...(keepsCompiled && { NODE_COMPILE_CACHE: join(cacheDir, 'compiled') }),
  };
  const children = names.map((name) =>
    startChild({
      command: process.execPath,
      args: [...nodeFlagsOf(name), mainOf(name)],
      env,
      output: 'inherit',
    }),
  );
  const asked = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(undefined));
  });
  const first = await Promise.race([asked, ...children.map(({ ended }) => ended)]);
  await Promise.all(children.map((child) => child.stop()));
  if (first === undefined) return EXIT.ok;
  // Of a service that says why it ends; else it was killed.
  return first <= EXIT.unreachable ? first : EXIT.failed;
}

function checkNode(nodes: readonly { readonly id: string }[], nodeId: string | undefined): void {
  const ids = nodes.map(({ id }) => id);
  if (nodeId === undefined ? ids.length === 1 : ids.includes(nodeId)) return;
  const told = ids.join(', ');
  if (nodeId === undefined) throw new UsageError(`--node-id is needed: the topology has ${told}`);
  throw new UsageError(`--node-id must be one of ${told}, not ${nodeId}`);
}
