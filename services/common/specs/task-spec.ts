// A TaskSpec as the scheduler takes it: defaults filled in, every fault found at once. Paths are those of the proto.
import { clone, create, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { type Duration, durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import {
  BudgetsSchema,
  type EarlyStop,
  type EvaluatorSpec,
  RuntimeSpecSchema,
  type Sampling,
  Stragglers,
  type StrategySpec,
  StrategySpecSchema,
  type TaskSpec,
  TaskSpecSchema,
} from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { FieldFault } from '../errors.ts';
import { QUEUE_PATTERN, TASK_ID_PATTERN } from '../ids.ts';
import { SAMPLES_PER_TASK_MAX, TASK_OUTLINE_BYTES_MAX, TASK_SPEC_BYTES_MAX } from '../limits.ts';
import { BUILDERS, type BuilderName, EVALUATORS, listed } from './catalogue.ts';
import { checkExternal, isExternal } from './external.ts';
import { Faults } from './faults-of.ts';
import { checkHarness } from './harness-spec.ts';
import { checkLiveGrading, outcomeGrading } from './live-grading-faults.ts';
import { checkRuntime, completeExec, completeFile, completeRuntime, stepsOf } from './runtime-spec.ts';
import { valueFaults } from './spec-values.ts';
import {
  builderConfigs,
  evaluatorSchemaOf,
  grantedSeconds,
  PLUGIN_PATH,
  pluginConfig,
} from './strategies.ts';

const BUDGETS_MS = {
  prepare: 300_000,
  ready: 3_600_000,
  run: 600_000,
  build: 120_000,
  evaluate: 300_000,
} as const;
const BUDGET_MS_MAX = 86_400_000;
const ATTEMPTS_DEFAULT = 3;
const ATTEMPTS_MAX = 10;
const PRIORITY_MAX = 100;
const CALLBACK_URL_CHARS_MAX = 2_048;
const DEFAULT_QUEUE = 'default';
const UINT32_MAX = 2 ** 32 - 1;

/** The completed spec and all its faults. What is too much, or cannot be copied, is left as it is, and that told alone. */
export function readTaskSpec(given: TaskSpec): { readonly spec: TaskSpec; readonly faults: FieldFault[] } {
  const found = valueFaults(given);
  if (found.length > 0) return { spec: given, faults: found };
  const spec = completeTaskSpec(given);
  return { spec, faults: checkTaskSpec(spec) };
}

/** A copy with every default of the proto's comments filled in. */
export function completeTaskSpec(given: TaskSpec): TaskSpec {
  const spec = clone(TaskSpecSchema, given);
  if (spec.numSamples === 0) spec.numSamples = 1;
  if (spec.maxAttempts === 0) spec.maxAttempts = ATTEMPTS_DEFAULT;
  spec.budgets ??= create(BudgetsSchema);
  const { evaluate } = spec.budgets;
  for (const [stage, ms] of Object.entries(BUDGETS_MS) as [Stage, number][]) {
    spec.budgets[stage] ??= durationFromMs(ms);
  }
  spec.budgets.evaluate = evaluate ?? durationFromMs(evaluateMs(spec));
  if (spec.queue === '') spec.queue = DEFAULT_QUEUE;
  if (!isExternal(spec)) spec.runtime ??= create(RuntimeSpecSchema);
  if (spec.runtime !== undefined) completeRuntime(spec.runtime);
  if (spec.harness?.command !== undefined) completeExec(spec.harness.command);
  spec.harness?.skills.forEach(completeFile);
  spec.evaluator?.files.forEach(completeFile);
  spec.builder ??= create(StrategySpecSchema);
  if (spec.builder.strategy === '') spec.builder.strategy = 'per_request';
  return spec;
}

/** What the evaluator's own limits add up to, and preparing its sandbox: tests that have 1,200 s are not cut at 300. */
function evaluateMs({ evaluator, budgets }: TaskSpec): number {
  const grantedMs = evaluator === undefined ? 0 : grantedSeconds(evaluator) * 1000;
  if (grantedMs === 0 || budgets?.prepare === undefined) return BUDGETS_MS.evaluate;
  const neededMs = Math.ceil(durationMs(budgets.prepare) + grantedMs);
  return Math.min(BUDGET_MS_MAX, Math.max(BUDGETS_MS.evaluate, neededMs));
}

/** The spec without file contents: files, skills and tests keep path and mode, folders lose their list. */
export function outlineOf(spec: TaskSpec): TaskSpec {
  const outline = clone(TaskSpecSchema, spec);
  for (const { step } of outline.runtime === undefined ? [] : stepsOf(outline.runtime)) {
    if (step.case === 'uploadFile') step.value.content = new Uint8Array();
    if (step.case === 'uploadDir') step.value.files = [];
  }
  for (const skill of outline.harness?.skills ?? []) skill.content = new Uint8Array();
  for (const file of outline.evaluator?.files ?? []) file.content = new Uint8Array();
  return outline;
}

/**
 * The outline with time for grading as it was by default before evaluators had their own: what tells an equal replay is to
 * be the same for tasks that were stored then.
 */
export function comparedOf(spec: TaskSpec): TaskSpec {
  const outline = outlineOf(spec);
  const { budgets } = outline;
  if (budgets?.evaluate === undefined) return outline;
  const isDefault = durationMs(budgets.evaluate) === evaluateMs(outline);
  if (isDefault) budgets.evaluate = durationFromMs(BUDGETS_MS.evaluate);
  return outline;
}

/** All faults of a completed spec; none: it can be submitted. Whether a node has its backend and image is not asked here. */
function checkTaskSpec(spec: TaskSpec): FieldFault[] {
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
  faults.require(
    QUEUE_PATTERN.test(spec.queue),
    'queue',
    'must be 1 to 64 of [A-Za-z0-9._-], the first one a letter or digit',
  );
  faults.range(spec.maxRunningSessions, 0, SAMPLES_PER_TASK_MAX, 'max_running_sessions');
  if (spec.earlyStop !== undefined) checkEarlyStop(spec.earlyStop, spec.numSamples, faults);
  checkCallback(spec.callbackUrl, faults);
  checkBudgets(spec, faults);
  if (spec.runtime !== undefined) checkRuntime(spec.runtime, 'runtime', faults);
  checkHarness(spec.harness, faults);
  if (isExternal(spec)) checkExternal(spec, faults);
  checkBuilder(spec.builder, faults);
  if (spec.evaluator !== undefined) checkEvaluator(spec.evaluator, faults);
  if (spec.evaluator && spec.runtime) checkLiveGrading(spec.evaluator, spec.runtime, faults);
  checkTestTimeout(spec, faults);
  if (spec.sampling !== undefined) checkSampling(spec.sampling, spec.numSamples, faults);
  checkSize(spec, faults);
  return faults.found;
}

type Stage = keyof typeof BUDGETS_MS;

function checkBudgets(spec: TaskSpec, faults: Faults): void {
  const stages: (Stage | 'queue')[] = [...(Object.keys(BUDGETS_MS) as Stage[])];
  if (spec.budgets?.queue !== undefined) stages.push('queue');
  for (const stage of stages) {
    const budget: Duration | undefined = spec.budgets?.[stage];
    const ms = budget === undefined ? 0 : durationMs(budget);
    faults.require(
      ms >= 1 && ms <= BUDGET_MS_MAX,
      `budgets.${stage}`,
      `must be above 0 and at most ${BUDGET_MS_MAX / 1000} s, not ${ms / 1000} s`,
    );
  }
}

function checkEarlyStop(early: EarlyStop, numSamples: number, faults: Faults): void {
  const { minUsableSessions, grace, stragglers } = early;
  faults.range(minUsableSessions, 1, numSamples, 'early_stop.min_usable_sessions');
  const seconds = grace === undefined ? 0 : durationMs(grace) / 1000;
  faults.range(seconds, 0, BUDGET_MS_MAX / 1000, 'early_stop.grace');
  const known = stragglers in Stragglers;
  faults.require(
    known,
    'early_stop.stragglers',
    `must be STRAGGLERS_STOP or STRAGGLERS_CARRY_OVER, not ${stragglers}`,
  );
}

/** Only http and https: a callback is no way to files or other protocols of the scheduler's machine. */
function checkCallback(text: string, faults: Faults): void {
  if (text === '') return;
  const url = URL.parse(text);
  const ok =
    url !== null &&
    text.length <= CALLBACK_URL_CHARS_MAX &&
    (url.protocol === 'http:' || url.protocol === 'https:') &&
    url.username === '' &&
    url.password === '';
  faults.require(
    ok,
    'callback_url',
    `must be an http or https URL of at most ${CALLBACK_URL_CHARS_MAX} characters, without user and password`,
  );
}

function checkBuilder(builder: StrategySpec | undefined, faults: Faults): void {
  const name = builder?.strategy ?? '';
  const named = isOne(BUILDERS, name) ? builderConfigs[name as BuilderName] : undefined;
  const schema = PLUGIN_PATH.test(name) ? pluginConfig : named;
  const rest = "or the path of a .js, .mjs or .ts file below the reconstructor's plugins_dir";
  faults.require(
    schema !== undefined,
    'builder.strategy',
    `unknown builder ${name}; there are ${listed(BUILDERS)}, ${rest}`,
  );
  if (schema !== undefined) faults.config(schema, builder?.config, 'builder.config');
}

function checkEvaluator({ strategy, config, env }: EvaluatorSpec, faults: Faults): void {
  const schema = evaluatorSchemaOf({ strategy, config });
  const rest = "or the path of a .js, .mjs or .ts file below the node's plugins_dir";
  faults.require(
    schema !== undefined,
    'evaluator.strategy',
    `unknown evaluator ${strategy}; there are ${listed(EVALUATORS)}, ${rest}`,
  );
  if (schema !== undefined) faults.config(schema, config, 'evaluator.config');
  faults.environment(env, 'evaluator.env');
}

/** What each evaluator calls the limit of its tests. */
const TIMEOUT_KEYS: ReadonlyMap<string, string> = new Map([
  ['test_on_output', 'test_timeout'],
  ['swebench_harness', 'test_timeout'],
  ['harbor', 'verifier_timeout'],
  ['verifier_result_file', 'command_timeout'],
]);

/** Who sets both means both: tests that are cut by the stage's budget would count as tests that do not end. */
function checkTestTimeout({ evaluator, budgets }: TaskSpec, faults: Faults): void {
  if (evaluator === undefined) return;
  const { strategy, config, field } = outcomeGrading(evaluator);
  const key = PLUGIN_PATH.test(strategy) ? 'timeout' : (TIMEOUT_KEYS.get(strategy) ?? '');
  const testTimeout = (config as JsonObject | null | undefined)?.[key];
  if (typeof testTimeout !== 'number') return;
  const seconds = budgets?.evaluate === undefined ? 0 : durationMs(budgets.evaluate) / 1000;
  if (seconds < 0.001 || testTimeout > BUDGET_MS_MAX / 1000) return;
  faults.require(
    testTimeout <= seconds,
    `${field}.${key}`,
    `${testTimeout} s do not fit into budgets.evaluate, which is ${seconds} s: raise that, or leave it out`,
  );
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
