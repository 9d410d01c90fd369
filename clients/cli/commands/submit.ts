// polar submit FILE...
import { toBinary } from '@bufbuild/protobuf';
import { type TaskSpec, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import {
  RetryOnly,
  type SubmitTaskResponse,
} from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { asPolarError, PolarError } from '../../../services/common/errors.ts';
import { RPC_BODY_BYTES_MAX } from '../../../services/common/limits.ts';
import { readTaskFile } from '../../../services/common/specs/task-file.ts';
import { type Arguments, type Command, textFlag, URL_FLAGS, UsageError } from '../arguments.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { say, sayJson } from '../output/say.ts';
import { runWatch } from './watch.ts';

export const submit: Command = {
  name: 'submit',
  summary: 'submit task files, all or none, and print their sessions; FILE -: standard input',
  operands: ['FILE...'],
  flags: {
    ...URL_FLAGS,
    'task-id': { type: 'string', value: 'ID', help: "use this id instead of the file's" },
    resume: {
      type: 'boolean',
      help: 'where a task is there already, give its sessions without a trajectory new attempts',
    },
    wait: {
      type: 'boolean',
      help: 'follow the tasks to their end; exit 1 if a session has no trajectory and was not stopped early',
    },
  },
  examples: [
    'polar submit examples/calculator/task.yaml --wait',
    'polar submit task.json --task-id try-2 --json',
    'polar submit tasks/*.yaml',
    'make-task | polar submit -',
  ],
  async run(args) {
    const specs = readSpecs(args);
    const taskIds = specs.map(({ taskId }) => taskId);
    const url = rolloutUrl(args);
    const client = rolloutClient(url);
    const submitted = await at(url, submitAll(url, specs, args.operands));
    for (const taskId of args.flags['resume'] === true ? taskIds : []) {
      await at(url, client.retrySessions({ taskId, only: RetryOnly.MISSING }));
    }
    for (const [i, { sessionIds }] of submitted.entries()) {
      if (args.flags['json'] === true) sayJson({ task_id: taskIds[i], session_ids: sessionIds });
      else say(`task ${taskIds[i]}\n${sessionIds.map((id) => `session ${id}`).join('\n')}`);
    }
    return args.flags['wait'] === true ? await runWatch({ ...args, operands: taskIds }, true) : 0;
  },
};

function readSpecs(args: Arguments): TaskSpec[] {
  const taskId = textFlag(args, 'task-id');
  if (taskId !== undefined && args.operands.length > 1) throw new UsageError('--task-id is for one FILE');
  const specs = readAll(args.operands);
  if (taskId !== undefined) for (const spec of specs) spec.taskId = taskId;
  checkSize(specs);
  return specs;
}

/** Throws INVALID_TASK with the faults of all of them. */
function readAll(files: readonly string[]): TaskSpec[] {
  const faults: string[] = [];
  const specs = files.flatMap((file) => {
    try {
      return [readTaskFile(file)];
    } catch (error) {
      const { reason, message } = asPolarError(error);
      if (reason !== 'INVALID_TASK') throw error;
      faults.push(message);
      return [];
    }
  });
  if (faults.length > 0) throw new PolarError('INVALID_TASK', faults.join('\n'));
  return specs;
}

/** Beside a spec goes its length. Throws INVALID_TASK. */
function checkSize(specs: readonly TaskSpec[]): void {
  const size = specs.reduce((sum, spec) => sum + toBinary(TaskSpecSchema, spec).byteLength + 16, 0);
  if (specs.length === 1 || size <= RPC_BODY_BYTES_MAX) return;
  const message = `${specs.length} tasks have ${size} bytes with their uploads, and ${RPC_BODY_BYTES_MAX} can be submitted together: name fewer FILEs, or upload less`;
  throw new PolarError('INVALID_TASK', message);
}

/** One as one: its faults are then told by their paths in the task. */
async function submitAll(
  url: string,
  specs: readonly TaskSpec[],
  files: readonly string[],
): Promise<SubmitTaskResponse[]> {
  const client = rolloutClient(url);
  const [spec] = specs;
  if (spec !== undefined && specs.length === 1) return [await client.submitTask({ spec })];
  try {
    return (await client.submitTasks({ tasks: specs.map((one) => ({ spec: one })) })).tasks;
  } catch (error) {
    throw byFile(asPolarError(error), files);
  }
}

/** Faults of a batch are told by the places of its tasks in it: who named files is told these. */
function byFile(error: PolarError, files: readonly string[]): PolarError {
  if (error.reason !== 'INVALID_TASK') return error;
  const message = error.message.replace(
    /^ {2}tasks\[(\d+)\]\.spec\.?/gm,
    (_, place) => `  ${files[Number(place)]}: `,
  );
  return new PolarError(error.reason, message, { cause: error });
}
