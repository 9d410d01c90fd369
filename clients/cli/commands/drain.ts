// polar drain NODE
import { type Command, URL_FLAGS } from '../arguments.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { say, sayJson } from '../output/say.ts';

export const drain: Command = {
  name: 'drain',
  summary: 'keep new sessions away from a node; what is there goes on',
  operands: ['NODE'],
  flags: { ...URL_FLAGS, undo: { type: 'boolean', help: 'let new sessions come again' } },
  examples: ['polar drain node-1', 'polar drain node-1 --undo'],
  async run(args) {
    const url = rolloutUrl(args);
    const nodeId = args.operands[0] ?? '';
    const undo = args.flags['undo'] === true;
    const { node } = await at(url, rolloutClient(url).drainNode({ nodeId, undo }));
    const there = node === undefined ? 0 : node.preparing + node.ready + node.running + node.finishing;
    if (args.flags['json'] === true) {
      sayJson({ node_id: nodeId, draining: node?.draining ?? false, sessions: there });
    } else say(`node ${nodeId}: ${undo ? 'takes sessions again' : `draining, ${there} sessions are there`}`);
    return 0;
  },
};
