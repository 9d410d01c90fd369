// polar drain NODE
import type { Node } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../../services/common/clock.ts';
import { asPolarError } from '../../../services/common/errors.ts';
import { type Command, URL_FLAGS, UsageError } from '../arguments.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { progress, say, sayJson } from '../output/say.ts';

/** Between two looks at a node that empties. */
const LOOK_MS = 1_000;
/** Looks in a row that no scheduler answers: one that follows another takes some seconds. */
const UNANSWERED_MAX = 30;

export const drain: Command = {
  name: 'drain',
  summary: 'keep new sessions away from a node; what is there goes on',
  operands: ['NODE'],
  flags: {
    ...URL_FLAGS,
    undo: { type: 'boolean', help: 'let new sessions come again' },
    wait: { type: 'boolean', help: 'end when no session is there any more: then the node can be stopped' },
  },
  examples: ['polar drain node-1', 'polar drain node-1 --wait', 'polar drain node-1 --undo'],
  async run(args) {
    const [undo, wait] = [args.flags['undo'] === true, args.flags['wait'] === true];
    if (undo && wait) throw new UsageError('--undo and --wait exclude each other');
    const url = rolloutUrl(args);
    const nodeId = args.operands[0] ?? '';
    const { node } = await at(url, rolloutClient(url).drainNode({ nodeId, undo }));
    const there = wait ? await emptied(url, nodeId) : sessionsOn(node);
    if (args.flags['json'] === true) {
      sayJson({ node_id: nodeId, draining: node?.draining ?? false, sessions: there });
    } else say(`node ${nodeId}: ${undo ? 'takes sessions again' : `draining, ${there} sessions are there`}`);
    return 0;
  },
};

/** Waits until nothing is there, and returns that. One that is known no more has nothing. */
async function emptied(url: string, nodeId: string): Promise<number> {
  let told = 0;
  for (let unanswered = 0; ; await sleep(LOOK_MS)) {
    try {
      const { nodes } = await at(url, rolloutClient(url).listNodes({}));
      const there = sessionsOn(nodes.find((one) => one.nodeId === nodeId));
      if (there === 0) return there;
      if (there !== told) progress(`node ${nodeId}: ${there} sessions are there`);
      told = there;
      unanswered = 0;
    } catch (error) {
      if (!asPolarError(error).retryable || ++unanswered > UNANSWERED_MAX) throw error;
    }
  }
}

const sessionsOn = (node: Node | undefined): number =>
  node === undefined ? 0 : node.preparing + node.ready + node.running + node.finishing + node.open;
