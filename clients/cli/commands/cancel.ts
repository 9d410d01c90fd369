// polar cancel TASK
import { type Command, URL_FLAGS } from '../arguments.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { say, sayJson } from '../output/say.ts';

export const cancel: Command = {
  name: 'cancel',
  summary: 'end all sessions of a task that have not ended',
  operands: ['TASK'],
  flags: { ...URL_FLAGS },
  examples: ['polar cancel calculator'],
  async run(args) {
    const url = rolloutUrl(args);
    const taskId = args.operands[0] ?? '';
    const { task } = await at(url, rolloutClient(url).cancelTask({ taskId }));
    const outcomes = task?.sessionsByOutcome ?? {};
    if (args.flags['json'] === true) sayJson({ task_id: taskId, sessions_by_outcome: outcomes });
    else
      say(
        `task ${taskId}: ${Object.entries(outcomes)
          .map(([name, count]) => `${count} ${name}`)
          .join(', ')}`,
      );
    return 0;
  },
};
