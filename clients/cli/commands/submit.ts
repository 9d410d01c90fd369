// polar submit FILE
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
    const { sessionIds } = await at(url, rolloutClient(url).submitTask({ spec }));
    if (args.flags['json'] === true) sayJson({ task_id: spec.taskId, session_ids: sessionIds });
    else say(`task ${spec.taskId}\n${sessionIds.map((id) => `session ${id}`).join('\n')}`);
    return args.flags['wait'] === true ? await runWatch({ ...args, operands: [spec.taskId] }) : 0;
  },
};
