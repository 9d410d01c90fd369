// polar serve SERVICE: one service in the foreground.
import { type Command, textFlag, UsageError } from '../arguments.ts';
import { SERVICES, type ServiceName } from '../services.ts';
import { serveAll } from './serve-group.ts';

export const serve: Command = {
  name: 'serve',
  summary: 'run one service in the foreground',
  operands: ['SERVICE'],
  flags: {
    'node-id': { type: 'string', value: 'ID', help: 'the node of the topology; needed where it has several' },
  },
  examples: [
    'polar serve scheduler -c topology.yaml',
    'polar serve llm-proxy -c topology.yaml --node-id node-1',
  ],
  async run(args) {
    const name = args.operands[0] as ServiceName;
    if (!SERVICES.includes(name))
      throw new UsageError(`unknown service ${name}; there are ${SERVICES.join(', ')}`);
    return await serveAll([name], args, textFlag(args, 'node-id'));
  },
};
