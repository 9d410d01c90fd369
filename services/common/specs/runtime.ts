// A runtime as it stands in a task or topology file. Names are those of the reference system's RuntimeSpec.
import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import type { NetworkPolicySchema } from '../../../gen/ts/polar/common/v1/network_pb.js';
import type { FieldFault } from '../errors.ts';
import { EGRESS_RULES_MAX } from '../limits.ts';
import { backendFault } from './backend-names.ts';
import { unofferedBy } from './catalogue.ts';
import { EGRESS_HOST_FORMS, egressHost } from './egress.ts';

const absolute = z.string().startsWith('/', 'must be an absolute path in the sandbox');
const envName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name');
export const envSchema = z.record(envName, z.string());

export const execSchema = z.strictObject({
  command: z.string().min(1),
  cwd: absolute.optional(),
  env: envSchema.default({}),
});

const execStep = execSchema.extend({
  type: z.literal('exec'),
  max_attempts: z.int().min(1).max(10).default(1),
  retry_backoff_seconds: z.number().min(0).max(60).default(0),
});
const uploadStep = z.strictObject({
  type: z.enum(['upload_file', 'upload_dir']),
  /** On the machine of the client, relative to the task file. */
  source: z.string().min(1),
  target: absolute,
});
/** Told apart by `type`, so that a fault names the wrong field of a step and not the step. */
const prepareStepSchema = z.preprocess(
  withType,
  z.discriminatedUnion('type', [execStep, uploadStep], {
    error: ({ input }) =>
      typeof input !== 'object'
        ? 'must be a mapping, as {command: ls}'
        : 'must be exec, upload_file or upload_dir',
  }),
);
export type PrepareStepFile = z.output<typeof prepareStepSchema>;

const egressHostSchema = z
  .string()
  .toLowerCase()
  .refine((host) => egressHost(host) !== undefined, EGRESS_HOST_FORMS);
const egressList = z
  .array(z.strictObject({ host: egressHostSchema, port: z.int().min(1).max(65_535).default(443) }))
  .max(EGRESS_RULES_MAX)
  .default([]);
/** The reference system's words are read: whatever they say, a sandbox reaches the LLM proxy and what is listed here. */
const networkSchema = z.preprocess(
  (network) => (['', 'none', 'host', 'proxy'].includes(network as string) ? {} : network),
  z.strictObject(
    { egress: egressList, prepare_egress: egressList },
    'must be {egress: […]}, or one of none, host, proxy, which all open nothing',
  ),
);

/** Read, so that a file of the reference system parses; what no backend here can do is refused by its name. */
export const runtimeSchema = z.strictObject({
  backend: z.string().optional(),
  image: z.string().default(''),
  prepare: z.array(prepareStepSchema).default([]),
  eval_prepare: z.array(prepareStepSchema).nullable().default(null),
  /** [mesh] No layer of what was prepared before. */
  prepare_each: z.boolean().default(false),
  env: envSchema.default({}),
  workdir: absolute.nullish(),
  cpus: z.number().positive().nullish(),
  memory_mb: z
    .int()
    .positive()
    .max(2 ** 32 - 1)
    .nullish(),
  network: networkSchema.nullish(),
  allow_internet: z.boolean().nullish(),
  gpus: z.int().min(0).nullish(),
  storage_mb: z.int().positive().nullish(),
  import_path: z.string().nullish(),
  kwargs: z.record(z.string(), z.unknown()).nullish(),
});
type NetworkInit = MessageInitShape<typeof NetworkPolicySchema>;
export type RuntimeFile = z.output<typeof runtimeSchema>;

/** A step without `type` is a command. */
function withType(step: unknown): unknown {
  const untyped = typeof step === 'object' && step !== null && !('type' in step);
  return untyped ? { ...step, type: 'exec' } : step;
}

/** The lists of a file as those of a RuntimeSpec; nothing where the file has none. */
export const networkOf = ({ network }: Pick<RuntimeFile, 'network'>): { network?: NetworkInit } =>
  network == null ? {} : { network: { egress: network.egress, prepareEgress: network.prepare_egress } };

/** Why a runtime as read cannot be had here: one fault for each field. */
export function unsupportedFields(runtime: RuntimeFile): FieldFault[] {
  const faults: FieldFault[] = [];
  const refuse = (field: string, present: boolean, description: string): void => {
    if (present) faults.push({ field, description });
  };
  const fault = runtime.backend === undefined ? undefined : backendFault(runtime.backend);
  refuse('backend', fault !== undefined, fault ?? '');
  refuse(
    'allow_internet',
    runtime.allow_internet === true,
    'a sandbox reaches the LLM proxy alone: leave it out',
  );
  refuse(
    'import_path',
    runtime.import_path != null,
    "name a plug-in as backend: its path below the node's plugins_dir",
  );
  refuse('kwargs', Object.keys(runtime.kwargs ?? {}).length > 0, 'no backend here takes kwargs');
  const { storage_mb: storageMb, network } = runtime;
  if (fault === undefined)
    faults.push(
      ...unofferedBy(runtime.backend ?? '', {
        storageMb: storageMb ?? 0,
        egress: [...(network?.egress ?? []), ...(network?.prepare_egress ?? [])],
      }),
    );
  return faults;
}

/** How often a step is tried, and after what pause. */
export const triesOf = (step: { max_attempts: number; retry_backoff_seconds: number }) => ({
  maxAttempts: step.max_attempts,
  ...(step.retry_backoff_seconds > 0 && { retryBackoff: durationFromMs(step.retry_backoff_seconds * 1000) }),
});
