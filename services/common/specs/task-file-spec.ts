// From a task file as read to the TaskSpec that is submitted, with what is wrong in it by its path in the file.
import { create, type JsonObject, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import {
  type PrepareStepSchema,
  type RuntimeSpecSchema,
  Stragglers,
  type TaskSpec,
  TaskSpecSchema,
} from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { FieldFault } from '../errors.ts';
import { networkOf, type PrepareStepFile, type RuntimeFile, triesOf, unsupportedFields } from './runtime.ts';
import type { TaskFile } from './task-file.ts';
import { readTaskSpec } from './task-spec.ts';
import { Uploads } from './uploads.ts';

type Step = MessageInitShape<typeof PrepareStepSchema>;

/** Reads the uploads below `folder`. `spec` is what is submitted if there are no faults. */
export function specOf(task: TaskFile, folder: string): { spec: TaskSpec; faults: FieldFault[] } {
  const uploads = new Uploads(folder);
  const { agent, builder, evaluator } = task;
  const spec = create(TaskSpecSchema, {
    taskId: task.task_id,
    instruction: task.instruction,
    numSamples: task.num_samples,
    maxAttempts: task.max_attempts,
    dispatchPriority: task.dispatch_priority,
    queue: task.queue,
    maxRunningSessions: task.max_running_sessions,
    callbackUrl: task.callback_url ?? '',
    ...(task.early_stop_min_usable_sessions != null && {
      earlyStop: {
        minUsableSessions: task.early_stop_min_usable_sessions,
        grace: durationFromMs(task.early_stop_grace_seconds * 1000),
        ...(task.early_stop_stragglers === 'carry_over' && { stragglers: Stragglers.CARRY_OVER }),
      },
    }),
    metadata: task.metadata as JsonObject,
    budgets: budgetsOf(task),
    harness: {
      name: agent.harness ?? '',
      modelName: agent.model_name,
      modelPools: agent.model_pools,
      settings: agent.settings as JsonObject,
      env: agent.env,
      importPath: agent.import_path ?? '',
      mcpServers: agent.mcp_servers ?? [],
      skills: agent.skills_path ? (uploads.folder(agent.skills_path, 'agent.skills_path') ?? []) : [],
      artifacts: agent.artifacts,
      ...(agent.custom_shell && { command: { ...agent.custom_shell, cwd: agent.custom_shell.cwd ?? '' } }),
    },
    builder: { strategy: builder.strategy, config: builder.config as JsonObject },
    ...(evaluator && {
      evaluator: {
        strategy: evaluator.strategy,
        config: evaluatorConfigOf(evaluator, uploads),
        env: evaluator.env,
      },
    }),
    ...(task.runtime && { runtime: runtimeOf(task.runtime, uploads) }),
    sampling: samplingOf(task),
  });
  const checked = readTaskSpec(spec).faults.map(({ field, description }) => ({
    field: filePath(field),
    description,
  }));
  // A step whose source cannot be read is told by its source alone.
  const lost = uploads.faults.map(({ field }) => field.replace(/\.source$/, ''));
  const others = checked.filter(({ field }) => !lost.includes(field));
  return { spec, faults: distinct([...unsupported(task), ...uploads.faults, ...others]) };
}

function budgetsOf({ timeout_seconds, metadata, budgets }: TaskFile): object {
  const stage = (name: string, seconds: number | undefined): object =>
    seconds === undefined ? {} : { [name]: durationFromMs(seconds * 1000) };
  return {
    ...stage('run', Math.min(timeout_seconds, metadata.agent_timeout ?? timeout_seconds)),
    ...stage('queue', budgets.queue_seconds),
    ...stage('ready', budgets.ready_seconds),
    ...stage('prepare', budgets.prepare_seconds),
    ...stage('build', budgets.build_seconds),
    ...stage('evaluate', budgets.evaluate_seconds),
  };
}

function samplingOf({ sampling, metadata }: TaskFile): object {
  const values = {
    temperature: sampling.temperature,
    topP: sampling.top_p,
    topK: sampling.top_k,
    maxTokens: sampling.max_tokens,
    seedBase: sampling.seed_base ?? metadata.eval_sampling_seed_base,
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** What the reference system has and this mesh does not offer is refused by its name, not passed over. */
const unsupported = ({ runtime }: TaskFile): FieldFault[] =>
  (runtime ? unsupportedFields(runtime) : []).map(({ field, description }) => ({
    field: `runtime.${field}`,
    description,
  }));

function runtimeOf(runtime: RuntimeFile, uploads: Uploads): MessageInitShape<typeof RuntimeSpecSchema> {
  const steps = (list: readonly PrepareStepFile[], at: string): Step[] =>
    list.map((step, i) => stepOf(step, `${at}[${i}]`, uploads));
  return {
    backend: runtime.backend ?? '',
    image: runtime.image,
    prepare: steps(runtime.prepare, 'runtime.prepare'),
    ...(runtime.eval_prepare && {
      evalPrepare: { steps: steps(runtime.eval_prepare, 'runtime.eval_prepare') },
    }),
    env: runtime.env,
    workdir: runtime.workdir ?? '',
    cpus: runtime.cpus ?? 0,
    memoryMb: runtime.memory_mb ?? 0,
    prepareEach: runtime.prepare_each,
    gpus: runtime.gpus ?? 0,
    storageMb: runtime.storage_mb ?? 0,
    ...networkOf(runtime),
  };
}

function stepOf(step: PrepareStepFile, at: string, uploads: Uploads): Step {
  switch (step.type) {
    case 'exec': {
      const { command, cwd = '', env } = step;
      return { step: { case: 'exec', value: { command, cwd, env, ...triesOf(step) } } };
    }
    case 'upload_file': {
      const file = uploads.file(step.source, `${at}.source`);
      if (file === undefined) return {};
      return { step: { case: 'uploadFile', value: { ...file, target: step.target } } };
    }
    case 'upload_dir': {
      const files = uploads.folder(step.source, `${at}.source`);
      if (files === undefined) return {};
      return { step: { case: 'uploadDir', value: { target: step.target, files } } };
    }
  }
}

/** What may be a file of the client, by strategy: the evaluator's machine does not have it. */
const FROM_FILES: ReadonlyMap<string, string> = new Map([
  ['rubric', 'rubric'],
  ['swebench_harness', 'instance'],
]);

/** With the texts of such files in place of their paths; of a rubric those of its outcome, too. */
export function evaluatorConfigOf(
  { strategy, config }: Strategy,
  uploads: Uploads,
  at = 'evaluator',
): JsonObject {
  const key = FROM_FILES.get(strategy) ?? '';
  const { [`${key}_path`]: path, ...rest } = withOutcome(config as JsonObject, uploads, at);
  if (typeof path !== 'string' || key === '' || key in rest) return { ...config, ...rest } as JsonObject;
  // One that cannot be read is told by its path alone.
  return { ...rest, [key]: uploads.text(path, `${at}.config.${key}_path`) ?? path };
}

type Strategy = Pick<NonNullable<TaskFile['evaluator']>, 'strategy' | 'config'>;

function withOutcome(config: JsonObject, uploads: Uploads, at: string): JsonObject {
  const outcome = outcomeShape.safeParse(config['outcome']).data;
  if (outcome === undefined) return config;
  return {
    ...config,
    outcome: { ...outcome, config: evaluatorConfigOf(outcome, uploads, `${at}.config.outcome`) },
  };
}

/** No more than that: all of it is checked where the configuration is. */
const outcomeShape = z.looseObject({ strategy: z.string(), config: z.record(z.string(), z.json()) });

/** Where a field of the proto stands in the file. */
function filePath(field: string): string {
  return field
    .replace(/^harness\.name$/, 'agent.harness')
    .replace(/^harness\.command/, 'agent.custom_shell')
    .replace(/^harness\.skills.*/, 'agent.skills_path')
    .replace(/^harness\./, 'agent.')
    .replace(/^early_stop\.min_usable_sessions$/, 'early_stop_min_usable_sessions')
    .replace(/^early_stop\.grace$/, 'early_stop_grace_seconds')
    .replace(/^early_stop\.stragglers$/, 'early_stop_stragglers')
    .replace(/^budgets\.run$/, 'timeout_seconds')
    .replace(/^budgets\.\w+$/, '$&_seconds')
    .replace(/^runtime\.eval_prepare\.steps/, 'runtime.eval_prepare')
    .replace(/(prepare\[\d+\])\.upload_dir\.files\[\d+\]\.\w+$/, '$1.source')
    .replace(/(prepare\[\d+\])\.(?:exec|upload_file|upload_dir)\./, '$1.');
}

const distinct = (faults: readonly FieldFault[]): FieldFault[] => [
  ...new Map(faults.map((fault) => [`${fault.field}\n${fault.description}`, fault])).values(),
];
