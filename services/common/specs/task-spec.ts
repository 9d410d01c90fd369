// A TaskSpec as the scheduler takes it: defaults filled in, every fault found at once. Paths are those of the proto.
import { clone, create, toBinary } from '@bufbuild/protobuf';
import { type Duration, durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import {
  BudgetsSchema,
  type EvaluatorSpec,
  type HarnessSpec,
  RuntimeSpecSchema,
  type Sampling,
  type StrategySpec,
  StrategySpecSchema,
  type TaskSpec,
  TaskSpecSchema,
} from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { FieldFault } from '../errors.ts';
import { TASK_ID_PATTERN } from '../ids.ts';
import { SAMPLES_PER_TASK_MAX, TASK_OUTLINE_BYTES_MAX, TASK_SPEC_BYTES_MAX } from '../limits.ts';
import { BUILDERS, EVALUATORS, HARNESSES, listed } from './catalogue.ts';
import { Faults } from './faults-of.ts';
import { poolsFault } from './model-pools.ts';
import { checkExec, checkRuntime, completeExec, completeRuntime, stepsOf } from './runtime-spec.ts';
import { builderConfigs, evaluatorConfigs, harnessSettings } from './strategies.ts';

const BUDGETS_MS = { prepare: 300_000, run: 600_000, build: 120_000, evaluate: 300_000 } as const;
const BUDGET_MS_MAX = 86_400_000;
const ATTEMPTS_DEFAULT = 3;
const ATTEMPTS_MAX = 10;
const PRIORITY_MAX = 100;
const MODEL_NAME_CHARS_MAX = 256;
const UINT32_MAX = 2 ** 32 - 1;

/** A copy with every default of the proto's comments filled in. */
export function completeTaskSpec(given: TaskSpec): TaskSpec {
  const spec = clone(TaskSpecSchema, given);
  if (spec.numSamples === 0) spec.numSamples = 1;
  if (spec.maxAttempts === 0) spec.maxAttempts = ATTEMPTS_DEFAULT;
  spec.budgets ??= create(BudgetsSchema);
  for (const [stage, ms] of Object.entries(BUDGETS_MS) as [Stage, number][]) {
    spec.budgets[stage] ??= durationFromMs(ms);
  }
  spec.runtime ??= create(RuntimeSpecSchema);
  completeRuntime(spec.runtime);
  if (spec.harness?.command !== undefined) completeExec(spec.harness.command);
  spec.builder ??= create(StrategySpecSchema);
  if (spec.builder.strategy === '') spec.builder.strategy = 'per_request';
  return spec;
}

/** The spec without file contents: files keep path and mode, folders lose their list. */
export function outlineOf(spec: TaskSpec): TaskSpec {
  const outline = clone(TaskSpecSchema, spec);
  for (const { step } of outline.runtime === undefined ? [] : stepsOf(outline.runtime)) {
    if (step.case === 'uploadFile') step.value.content = new Uint8Array();
    if (step.case === 'uploadDir') step.value.files = [];
  }
  return outline;
}

/** All faults of a completed spec; none: it can be submitted. Whether a node has its backend and image is not asked here. */
export function checkTaskSpec(spec: TaskSpec): FieldFault[] {
  const faults = new Faults();
  faults.require(
    TASK_ID_PATTERN.test(spec.taskId),
    'task_id',
    'must be 1 to 128 of [A-Za-z0-9._-], the first one a letter or digit',
  );
  faults.text(spec.instruction, 'instruction');
  faults.range(spec.numSamples, 1, SAMPLES_PER_TASK_MAX, 'num_samples');
  faults.range(spec.dispatchPriority, 0, PRIORITY_MAX, 'dispatch_priority');
  faults.range(spec.maxAttempts, 1, ATTEMPTS_MAX, 'max_attempts');
  checkBudgets(spec, faults);
  if (spec.runtime !== undefined) checkRuntime(spec.runtime, 'runtime', faults);
  checkHarness(spec.harness, faults);
  checkBuilder(spec.builder, faults);
  if (spec.evaluator !== undefined) checkEvaluator(spec.evaluator, faults);
  if (spec.sampling !== undefined) checkSampling(spec.sampling, spec.numSamples, faults);
  checkSize(spec, faults);
  return faults.found;
}

type Stage = keyof typeof BUDGETS_MS;

function checkBudgets(spec: TaskSpec, faults: Faults): void {
  for (const stage of Object.keys(BUDGETS_MS) as Stage[]) {
    const budget: Duration | undefined = spec.budgets?.[stage];
    const ms = budget === undefined ? 0 : durationMs(budget);
    faults.require(
      ms >= 1 && ms <= BUDGET_MS_MAX,
      `budgets.${stage}`,
      `must be above 0 and at most ${BUDGET_MS_MAX / 1000} s, not ${ms / 1000} s`,
    );
  }
}

function checkHarness(harness: HarnessSpec | undefined, faults: Faults): void {
  const there = `there are ${listed(HARNESSES)}`;
  if (harness === undefined || harness.name === '') {
    faults.require(false, 'harness.name', `must be set; ${there}`);
    return;
  }
  const { name, command } = harness;
  faults.environment(harness.env, 'harness.env');
  faults.require(
    harness.modelName.length <= MODEL_NAME_CHARS_MAX,
    'harness.model_name',
    `must be at most ${MODEL_NAME_CHARS_MAX} characters`,
  );
  const pools = poolsFault(harness.modelPools);
  faults.require(pools === undefined, 'harness.model_pools', pools ?? '');
  if (command !== undefined) checkExec(command, 'harness.command', faults);
  if (!faults.require(isOne(HARNESSES, name), 'harness.name', `unknown harness ${name}; ${there}`)) return;
  faults.config(harnessSettings[name as keyof typeof harnessSettings], harness.settings, 'harness.settings');
  const fits = (name === 'shell') === (command !== undefined);
  const rule = name === 'shell' ? 'must be set for the shell harness' : 'is for the shell harness only';
  faults.require(fits, 'harness.command', rule);
}

function checkBuilder(builder: StrategySpec | undefined, faults: Faults): void {
  const name = builder?.strategy ?? '';
  const known = isOne(BUILDERS, name);
  faults.require(known, 'builder.strategy', `unknown builder ${name}; there are ${listed(BUILDERS)}`);
  if (known) {
    faults.config(builderConfigs[name as keyof typeof builderConfigs], builder?.config, 'builder.config');
  }
}

function checkEvaluator({ strategy, config, env }: EvaluatorSpec, faults: Faults): void {
  const known = isOne(EVALUATORS, strategy);
  faults.require(
    known,
    'evaluator.strategy',
    `unknown evaluator ${strategy}; there are ${listed(EVALUATORS)}`,
  );
  if (known) {
    faults.config(evaluatorConfigs[strategy as keyof typeof evaluatorConfigs], config, 'evaluator.config');
  }
  faults.environment(env, 'evaluator.env');
}

function checkSampling(sampling: Sampling, numSamples: number, faults: Faults): void {
  const { temperature, topP, topK, maxTokens, seedBase } = sampling;
  if (temperature !== undefined) faults.range(temperature, 0, 2, 'sampling.temperature');
  if (topP !== undefined) {
    faults.require(topP > 0 && topP <= 1, 'sampling.top_p', `must be above 0 and at most 1, not ${topP}`);
  }
  if (topK !== undefined) {
    faults.require(
      topK >= 1 || topK === -1,
      'sampling.top_k',
      `must be at least 1, or -1 for off, not ${topK}`,
    );
  }
  if (maxTokens !== undefined) faults.require(maxTokens >= 1, 'sampling.max_tokens', 'must be at least 1');
  if (seedBase !== undefined) {
    const last = seedBase + numSamples - 1;
    faults.require(last <= UINT32_MAX, 'sampling.seed_base', `the last sample's seed would be ${last}`);
  }
}

function checkSize(spec: TaskSpec, faults: Faults): void {
  const all = toBinary(TaskSpecSchema, spec).byteLength;
  faults.require(
    all <= TASK_SPEC_BYTES_MAX,
    '(task)',
    `is ${all} bytes, at most TASK_SPEC_BYTES_MAX (${TASK_SPEC_BYTES_MAX}): upload less`,
  );
  // Only a spec above the limit can have an outline above it.
  const outline = all <= TASK_OUTLINE_BYTES_MAX ? all : toBinary(TaskSpecSchema, outlineOf(spec)).byteLength;
  faults.require(
    outline <= TASK_OUTLINE_BYTES_MAX,
    '(task)',
    `is ${outline} bytes without uploads, at most TASK_OUTLINE_BYTES_MAX (${TASK_OUTLINE_BYTES_MAX}): put long texts into uploaded files`,
  );
}

const isOne = (names: readonly string[], name: string): boolean => names.includes(name);
