// polar retry TASK
import { RetryOnly } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { type Command, textFlag, URL_FLAGS, UsageError } from '../arguments.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { say, sayJson } from '../output/say.ts';
import { runWatch } from './watch.ts';

const ONLY: Readonly<Record<string, RetryOnly>> = {
  infra: RetryOnly.INFRASTRUCTURE,
  failed: RetryOnly.FAILED,
  missing: RetryOnly.MISSING,
};

export const retry: Command = {
  name: 'retry',
  summary: 'give ended sessions of a task new attempts; earlier ones are kept',
  operands: ['TASK'],
  flags: {
    ...URL_FLAGS,
    only: {
      type: 'string',
      value: 'WHICH',
      help: 'infra: infrastructure failures (default); failed: all failures; missing: without a trajectory, but those stopped early',
    },
    wait: {
      type: 'boolean',
      help: 'follow the task to its end; exit 1 if a session has no trajectory and was not stopped early',
    },
  },
  examples: ['polar retry calculator', 'polar retry calculator --only missing --wait'],
  async run(args) {
    const name = textFlag(args, 'only') ?? 'infra';
    const only = ONLY[name];
    if (only === undefined) throw new UsageError(`--only is ${Object.keys(ONLY).join(', ')}, not ${name}`);
    const url = rolloutUrl(args);
    const taskId = args.operands[0] ?? '';
    const { sessionIds } = await at(url, rolloutClient(url).retrySessions({ taskId, only }));
    if (args.flags['json'] === true) sayJson({ task_id: taskId, session_ids: sessionIds });
    else
      say(
        sessionIds.length === 0 ? 'nothing to try again' : sessionIds.map((id) => `session ${id}`).join('\n'),
      );
    return args.flags['wait'] === true ? await runWatch(args, true) : 0;
  },
};
