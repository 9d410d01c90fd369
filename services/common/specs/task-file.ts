// The task file: YAML or JSON, a superset of the reference system's TaskRequest. See docs/task-file.md.
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { faulty, parsePlain, parseStrict, readText } from '../config/faults.ts';
import { type FieldFault, PolarError } from '../errors.ts';
import { TASK_ID_PATTERN } from '../ids.ts';
import { SAMPLES_PER_TASK_MAX } from '../limits.ts';
import { envSchema, execSchema, runtimeSchema } from './runtime.ts';
import { specOf } from './task-file-spec.ts';

const seconds = z.number().positive().max(86_400);
const json = z.json();
const config = z.record(z.string(), json).default({});
const uint32 = z
  .int()
  .min(0)
  .max(2 ** 32 - 1);

const mcpServer = z.strictObject({
  name: z.string().min(1),
  transport: z.enum(['stdio', 'sse', 'streamable_http']).default('stdio'),
  command: z.string().default(''),
  args: z.array(z.string()).default([]),
  env: envSchema.default({}),
  url: z.string().default(''),
});

const agent = z.strictObject({
  harness: z.string().nullish(),
  import_path: z.string().nullish(),
  model_name: z.string().default(''),
  /** Frozen models that the harness may call too. */
  model_pools: z.array(z.string()).default([]),
  settings: config,
  env: envSchema.default({}),
  mcp_servers: z.array(mcpServer).nullish(),
  /** A folder on the machine of the client, relative to the task file: one folder for each skill. */
  skills_path: z.string().min(1).nullish(),
  /** [mesh] Files and folders of the sandbox to keep. */
  artifacts: z.array(z.string().min(1)).default([]),
  /** The command of harness `shell`. */
  custom_shell: execSchema.nullish(),
});

const strategy = z.strictObject({ strategy: z.string().min(1), config });

export const evaluatorSchema = strategy.extend({
  env: envSchema.default({}),
  refresh_runtime: z.boolean().default(false),
});

export const taskFileSchema = z.strictObject({
  task_id: z
    .string()
    .regex(TASK_ID_PATTERN, 'must be 1 to 128 of [A-Za-z0-9._-], the first one a letter or digit'),
  instruction: z.string().min(1, 'must not be empty'),
  num_samples: z.int().min(1).max(SAMPLES_PER_TASK_MAX).default(1),
  /** The run alone; see `budgets` for the other stages. */
  timeout_seconds: seconds.default(600),
  runtime: runtimeSchema.nullish(),
  agent,
  builder: strategy.default({ strategy: 'per_request', config: {} }),
  evaluator: evaluatorSchema.nullish(),
  /** Told by POST when the group is there. */
  callback_url: z.string().nullish(),
  metadata: z
    .object({
      /** A shorter limit of the run. */
      agent_timeout: seconds.optional(),
      eval_sampling_seed_base: uint32.optional(),
    })
    .catchall(json)
    .default({}),
  dispatch_priority: z.int().min(0).max(100).default(0),
  early_stop_min_usable_sessions: z.int().min(1).nullish(),
  /** [mesh] What the others still have from then on. */
  early_stop_grace_seconds: z.number().min(0).max(86_400).default(0),
  /** [mesh] What becomes of the others then. */
  early_stop_stragglers: z.enum(['stop', 'carry_over']).default('stop'),
  /** [mesh] */
  queue: z.string().default(''),
  /** [mesh] 0: no cap. */
  max_running_sessions: z.int().min(0).max(SAMPLES_PER_TASK_MAX).default(0),
  /** [mesh] */
  budgets: z
    .strictObject({
      queue_seconds: seconds.optional(),
      prepare_seconds: seconds.optional(),
      ready_seconds: seconds.optional(),
      build_seconds: seconds.optional(),
      evaluate_seconds: seconds.optional(),
    })
    .prefault({}),
  /** [mesh] */
  sampling: z
    .strictObject({
      temperature: z.number().min(0).max(2).optional(),
      top_p: z.number().positive().max(1).optional(),
      top_k: z
        .int()
        .min(-1)
        .max(2 ** 31 - 1)
        .optional(),
      max_tokens: uint32.min(1).optional(),
      seed_base: uint32.optional(),
    })
    .prefault({}),
  /** [mesh] */
  max_attempts: z.int().min(1).max(10).default(3),
});
export type TaskFile = z.output<typeof taskFileSchema>;

/**
 * Read a task file, or with `-` standard input, and the files it uploads. Throws INVALID_TASK with every fault, by its path in
 * the file.
 */
export function readTaskFile(file: string): TaskSpec {
  if (file === '-') return parseTaskFile(readText(STANDARD_INPUT, 'INVALID_TASK', 0), STANDARD_INPUT);
  return parseTaskFile(readText(file, 'INVALID_TASK'), file);
}

/** The same from text; upload sources are relative to the folder of `file`. */
export function parseTaskFile(text: string, file: string): TaskSpec {
  const { task, faults: ofSchema } = parseParts(text, file);
  const { spec, faults: ofSpec } = specOf(task, dirname(resolve(file)));
  const named = new Set(ofSchema.map(partOf));
  const faults = [...ofSchema, ...ofSpec.filter((fault) => !named.has(partOf(fault)))];
  if (faults.length > 0) throw faulty('INVALID_TASK', file, faults);
  return spec;
}

/** Uploads are then relative to the folder of the command. */
const STANDARD_INPUT = 'standard input';

/** Stand-ins for required parts that are wrong, so that the other parts are checked all the same. */
const REQUIRED = { task_id: 'task', instruction: 'instruction', agent: {} };

function parseParts(text: string, file: string): { task: TaskFile; faults: readonly FieldFault[] } {
  try {
    return { task: parseStrict(taskFileSchema, text, file, 'INVALID_TASK'), faults: [] };
  } catch (error) {
    const faults = error instanceof PolarError ? error.fields : [];
    const wrong = new Set(faults.map(partOf));
    const value = wrong.has('') ? undefined : parsePlain(text);
    if (typeof value !== 'object' || value === null) throw error;
    const right = Object.entries(value).filter(([key]) => !wrong.has(key));
    const rest = taskFileSchema.safeParse({ ...REQUIRED, ...Object.fromEntries(right) });
    if (!rest.success) throw error;
    return { task: rest.data, faults };
  }
}

/** `runtime` of `runtime.prepare[2].source`; empty for a fault of the file as a whole. */
const partOf = ({ field }: FieldFault): string => /^\w+(?=$|[.[])/.exec(field)?.[0] ?? '';
