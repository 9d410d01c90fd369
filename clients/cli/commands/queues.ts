// polar queues
import { ListQueuesResponseSchema } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { type Command, URL_FLAGS } from '../arguments.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { jsonOf } from '../output/json.ts';
import { say, sayJson } from '../output/say.ts';
import { table } from '../output/table.ts';

export const queues: Command = {
  name: 'queues',
  summary: 'show the queues, what waits and runs in them, and the run time that they had',
  operands: [],
  flags: { ...URL_FLAGS },
  examples: ['polar queues'],
  async run(args) {
    const url = rolloutUrl(args);
    const answer = await at(url, rolloutClient(url).listQueues({}));
    if (args.flags['json'] === true) sayJson(jsonOf(ListQueuesResponseSchema, answer));
    else {
      const rows = answer.queues.map((queue) => [
        ...[queue.name, String(queue.weight), queue.maxRunning === 0 ? '–' : String(queue.maxRunning)],
        ...[String(queue.waiting), String(queue.running), queue.runSeconds.toFixed(1)],
      ]);
      say(table(['queue', 'weight', 'cap', 'waiting', 'running', 'run s'], rows));
    }
    return 0;
  },
};
