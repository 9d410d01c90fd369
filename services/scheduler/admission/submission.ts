// What a submit asks for: its spec completed, and every fault of it with its path in the request.
import { create } from '@bufbuild/protobuf';
import { type TaskSpec, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { SubmitTaskRequest } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { FieldFault } from '../../common/errors.ts';
import { BATCH_SESSIONS_MAX, BATCH_TASKS_MAX, REQUEST_ID_CHARS_MAX } from '../../common/limits.ts';
import { ASKS_JUDGE, listed } from '../../common/specs/catalogue.ts';
import { TASK_VALUES_MAX, valuesOf } from '../../common/specs/spec-values.ts';
import { readTaskSpec } from '../../common/specs/task-spec.ts';
import type { SchedulerContext } from '../context.ts';
import { specDigest } from '../domain/task.ts';
import type { CallbackHosts } from './callback-hosts.ts';

export interface Submission {
  /** Completed, where it has no faults. */
  readonly spec: TaskSpec;
  readonly requestId: string;
  /** Empty where it has faults. */
  readonly specSha256: string;
  /** Where its spec is in the request, with a dot behind it; empty: the request is about this spec alone. */
  readonly path: string;
}

type Request = Pick<SubmitTaskRequest, 'spec' | 'requestId'>;

/** What the topology lets tasks name. */
export interface Allowed {
  readonly hosts: CallbackHosts;
  /** Names of judges. */
  readonly judges: readonly string[];
}

export const allowedBy = ({ callbackHosts: hosts, config }: SchedulerContext): Allowed => ({
  hosts,
  judges: Object.keys(config.topology.evaluators.judges),
});

interface Read {
  readonly submission: Submission;
  readonly faults: readonly FieldFault[];
}

/** `at` is where the request is in a batch, with a dot behind it. */
export function readSubmission(request: Request, allowed: Allowed, at = ''): Read {
  const { spec, faults: own } = readTaskSpec(request.spec ?? create(TaskSpecSchema));
  const path = at === '' ? '' : `${at}spec.`;
  const found = [...own, ...hostFaults(spec, allowed), ...judgeFaults(spec, allowed)];
  const faults = found.map(({ field, description }) => ({ field: `${path}${field}`, description }));
  if (request.requestId.length > REQUEST_ID_CHARS_MAX) {
    const description = `must be at most ${REQUEST_ID_CHARS_MAX} characters`;
    faults.push({ field: `${at}request_id`, description });
  }
  const requestId = request.requestId || spec.taskId;
  const specSha256 = faults.length > 0 ? '' : specDigest(spec);
  return { submission: { spec, requestId, specSha256, path }, faults };
}

/** The same of several that are one batch. */
export function readBatch(
  requests: readonly Request[],
  allowed: Allowed,
): { readonly submissions: readonly Submission[]; readonly faults: readonly FieldFault[] } {
  const limit = `BATCH_TASKS_MAX (${BATCH_TASKS_MAX})`;
  if (requests.length === 0 || requests.length > BATCH_TASKS_MAX) {
    const description = `must be 1 to ${limit}, not ${requests.length}`;
    return { submissions: [], faults: [{ field: 'tasks', description }] };
  }
  const values = requests.reduce((sum, { spec }) => sum + (spec === undefined ? 0 : valuesOf(spec)), 0);
  if (values > TASK_VALUES_MAX) {
    const description = `hold more than TASK_VALUES_MAX (${TASK_VALUES_MAX}) values: submit fewer at once`;
    return { submissions: [], faults: [{ field: 'tasks', description }] };
  }
  const read = requests.map((request, i) => readSubmission(request, allowed, `tasks[${i}].`));
  const submissions = read.map(({ submission }) => submission);
  const faults = [...read.flatMap((one) => one.faults), ...twice(submissions)];
  const sessions = submissions.reduce((sum, { spec }) => sum + spec.numSamples, 0);
  if (sessions > BATCH_SESSIONS_MAX) {
    const description = `are ${sessions} sessions, at most BATCH_SESSIONS_MAX (${BATCH_SESSIONS_MAX})`;
    faults.push({ field: 'tasks', description });
  }
  return { submissions, faults };
}

/** Of two that ask for the same task, or say that they are the same request, it is not clear which one is meant. */
function twice(submissions: readonly Submission[]): FieldFault[] {
  const faults: FieldFault[] = [];
  const taskIds = new Set<string>();
  const requestIds = new Set<string>();
  for (const [i, { spec, requestId }] of submissions.entries()) {
    if (taskIds.has(spec.taskId)) {
      faults.push({ field: `tasks[${i}].spec.task_id`, description: `${spec.taskId} is there twice` });
    } else if (requestIds.has(requestId)) {
      faults.push({ field: `tasks[${i}].request_id`, description: `${requestId} is there twice` });
    }
    taskIds.add(spec.taskId);
    requestIds.add(requestId);
  }
  return faults;
}

function hostFaults({ callbackUrl }: TaskSpec, { hosts }: Allowed): FieldFault[] {
  const url = URL.parse(callbackUrl);
  const description = url === null ? undefined : hosts.fault(url);
  return description === undefined ? [] : [{ field: 'callback_url', description }];
}

function judgeFaults({ evaluator }: TaskSpec, { judges }: Allowed): FieldFault[] {
  const judge = evaluator?.config?.['judge'];
  if (!ASKS_JUDGE.some((name) => name === evaluator?.strategy) || typeof judge !== 'string') return [];
  if (judge === '' || judges.includes(judge)) return [];
  const description = `the topology has no judge ${judge}; there are ${listed(judges) || 'none'}`;
  return [{ field: 'evaluator.config.judge', description }];
}
