// polar submit FILE
import { RetryOnly } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { readTaskFile } from '../../../services/common/specs/task-file.ts';
import { type Command, textFlag, URL_FLAGS } from '../arguments.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { say, sayJson } from '../output/say.ts';
import { runWatch } from './watch.ts';

export const submit: Command = {
  name: 'submit',
  summary: 'submit a task file and print its sessions',
  operands: ['FILE'],
  flags: {
    ...URL_FLAGS,
    'task-id': { type: 'string', value: 'ID', help: "use this id instead of the file's" },
    resume: {
      type: 'boolean',
      help: 'where the task is there already, give its sessions without a trajectory new attempts',
    },
    wait: { type: 'boolean', help: 'follow the task to its end; exit 1 if a session has no trajectory' },
  },
  examples: [
    'polar submit examples/calculator/task.yaml --wait',
    'polar submit task.json --task-id try-2 --json',
  ],
  async run(args) {
    const spec = readTaskFile(args.operands[0] ?? '');
    spec.taskId = textFlag(args, 'task-id') ?? spec.taskId;
    const url = rolloutUrl(args);
    const client = rolloutClient(url);
    const { sessionIds } = await at(url, client.submitTask({ spec }));
    if (args.flags['resume'] === true) {
      await at(url, client.retrySessions({ taskId: spec.taskId, only: RetryOnly.MISSING }));
    }
    if (args.flags['json'] === true) sayJson({ task_id: spec.taskId, session_ids: sessionIds });
    else say(`task ${spec.taskId}\n${sessionIds.map((id) => `session ${id}`).join('\n')}`);
    return args.flags['wait'] === true ? await runWatch({ ...args, operands: [spec.taskId] }) : 0;
  },
};
