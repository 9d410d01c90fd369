// Specs with one wrong field each, and what is to be said of it.
import { create, type JsonObject, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { NetworkPolicySchema } from '../../gen/ts/polar/common/v1/network_pb.js';
import {
  type Budgets,
  EarlyStopSchema,
  type ExecStep,
  ExecStepSchema,
  type HarnessSpec,
  type McpServer,
  McpServerSchema,
  type PrepareStep,
  PrepareStepSchema,
  type RuntimeSpec,
  SamplingSchema,
  type Stragglers,
  type StrategySpec,
  type TaskSpec,
  TaskSpecSchema,
} from '../../gen/ts/polar/common/v1/task_pb.js';
import {
  TASK_OUTLINE_BYTES_MAX,
  TASK_SPEC_BYTES_MAX,
  UPLOAD_FILES_MAX,
} from '../../services/common/limits.ts';
import { TASK_VALUES_MAX } from '../../services/common/specs/spec-values.ts';
import { type Change, harbor, nested, skill, WRONG_EVALUATORS } from './faulty-evaluators.ts';

export const upload = (target: string, content = new Uint8Array([1]), mode = 0) =>
  create(PrepareStepSchema, { step: { case: 'uploadFile', value: { target, content, mode } } });
type ExecInit = Exclude<MessageInitShape<typeof ExecStepSchema>, ExecStep>;
export const exec = (over: ExecInit = {}) =>
  create(PrepareStepSchema, { step: { case: 'exec', value: { command: 'make', maxAttempts: 1, ...over } } });
export const dir = (target: string, ...files: string[]) =>
  create(PrepareStepSchema, {
    step: {
      case: 'uploadDir',
      value: { target, files: files.map((name) => ({ target: name, content: new Uint8Array([2]) })) },
    },
  });

const variables = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`V${i}`, '']));

export const good = (): TaskSpec =>
  create(TaskSpecSchema, {
    taskId: 'calc-1.a_b',
    instruction: 'make the tests pass',
    numSamples: 4,
    runtime: { prepare: [exec(), upload('/data/a'), dir('/data/d', 'x/y', 'z')], env: { A: 'b' } },
    harness: { name: 'pi', modelName: 'm', settings: { max_tokens: 100 } },
    builder: { strategy: 'prefix_merging' },
    evaluator: {
      strategy: 'test_on_output',
      config: { test_command: 'make test', expected_output_json: { a: 'PASSED' } },
    },
    sampling: { temperature: 1, topP: 0.9, topK: -1, maxTokens: 10, seedBase: 7 },
    dispatchPriority: 3,
  });

/** Puts fields on a part of the spec. */
const set =
  <T extends object>(part: (spec: TaskSpec) => T | undefined, over: Partial<T>): Change =>
  (spec) => {
    Object.assign(part(spec) ?? expect.fail('the good task lacks this part'), over);
  };
const top = (over: Partial<TaskSpec>): Change => set((spec) => spec, over);
const budgets = (over: Partial<Budgets>): Change => set((spec) => spec.budgets, over);
const runtime = (over: Partial<RuntimeSpec>): Change => set((spec) => spec.runtime, over);
const step = (...prepare: PrepareStep[]): Change => runtime({ prepare });
const harness = (over: Partial<HarnessSpec>): Change => set((spec) => spec.harness, over);
export const codex = (over: Partial<HarnessSpec>): Change =>
  harness({ name: 'codex', settings: {}, ...over });
const claude = (settings: JsonObject): Change => harness({ name: 'claude_code', settings });
const server = (over: Exclude<MessageInitShape<typeof McpServerSchema>, McpServer> = {}): McpServer =>
  create(McpServerSchema, { name: 'probe', transport: 'stdio', command: 'serve', ...over });
const builder = (over: Partial<StrategySpec>): Change => set((spec) => spec.builder, over);
const sampling = (over: MessageInitShape<typeof SamplingSchema>): Change =>
  top({ sampling: create(SamplingSchema, over) });
export const command = (over: ExecInit): Change =>
  harness({
    name: 'shell',
    settings: {},
    command: create(ExecStepSchema, { command: 'run', maxAttempts: 1, ...over }),
  });
export const without =
  (field: 'harness' | 'evaluator' | 'runtime'): Change =>
  (spec) => {
    delete spec[field];
  };
const network = (...hosts: string[]) =>
  create(NetworkPolicySchema, { egress: hosts.map((host) => ({ host, port: 443 })) });
/** One level more than a spec may have. */
const none = (): PrepareStep => create(PrepareStepSchema);

/** Each field wrong in turn: the fault's field, the change that makes it, what its description says. */
export const WRONG: readonly [field: string, change: Change, description?: RegExp][] = [
  ['task_id', top({ taskId: '' })],
  ['task_id', top({ taskId: 'a b' })],
  ['task_id', top({ taskId: '.a' })],
  ['task_id', top({ taskId: 'x'.repeat(129) })],
  ['instruction', top({ instruction: ' \n' })],
  ['instruction', top({ instruction: 'a\0b' })],
  ['num_samples', top({ numSamples: 16_385 })],
  ['dispatch_priority', top({ dispatchPriority: 101 })],
  ['max_attempts', top({ maxAttempts: 11 })],
  ['budgets.prepare', budgets({ prepare: durationFromMs(0) })],
  ['budgets.run', budgets({ run: durationFromMs(-1) })],
  ['budgets.build', budgets({ build: durationFromMs(86_400_001) })],
  ['budgets.evaluate', budgets({ evaluate: durationFromMs(0.2) })],
  ['runtime.backend', runtime({ backend: 'nerdctl' }), /bubblewrap, process, docker, podman, apptainer/],
  [
    'runtime.storage_mb',
    runtime({ backend: 'process', storageMb: 1 }),
    /bubblewrap, docker, podman and apptainer do/,
  ],
  [
    'runtime.network',
    runtime({ backend: 'process', network: network('a') }),
    /process has the network of the host/,
  ],
  ['runtime.network.egress[0].host', runtime({ network: network('a b') }), /must be a name/],
  ['runtime.image', runtime({ backend: 'process', image: 'x' })],
  ['runtime.image', runtime({ image: '../etc' })],
  ['runtime.workdir', runtime({ workdir: 'work' })],
  ['runtime.workdir', runtime({ workdir: '/a/../b' }), /\.\./],
  ['runtime.env.A-B', runtime({ env: { 'A-B': '' } })],
  ['runtime.env.A', runtime({ env: { A: '\0' } })],
  ['runtime.env', runtime({ env: variables(513) }), /^has 513 variables, at most 512$/],
  ['runtime.cpus', runtime({ cpus: -1 })],
  ['runtime.cpus', runtime({ cpus: Number.NaN })],
  ['runtime.prepare[0]', step(none()), /exec, upload_file, upload_dir/],
  ['runtime.prepare[1].exec.command', step(exec(), exec({ command: '' }))],
  ['runtime.prepare[0].exec.command', step(exec({ command: 'x'.repeat(131_072) })), /131072 bytes, at most/],
  ['runtime.prepare[0].exec.env.A', step(exec({ env: { A: 'ä'.repeat(65_535) } })), /131072 bytes, at most/],
  ['runtime.prepare[0].exec.cwd', step(exec({ cwd: 'a' }))],
  ['runtime.prepare[0].exec.env.1', step(exec({ env: { 1: '' } }))],
  ['runtime.prepare[0].exec.max_attempts', step(exec({ maxAttempts: 11 }))],
  ['runtime.prepare[0].exec.retry_backoff', step(exec({ retryBackoff: durationFromMs(60_001) }))],
  ['runtime.prepare[0].upload_file.target', step(upload('a'))],
  ['runtime.prepare[0].upload_file.target', step(upload('/a/../../b')), /\.\./],
  ['runtime.prepare[0].upload_file.target', step(upload('/a\0'))],
  ['runtime.prepare[0].upload_file.mode', step(upload('/a', undefined, 0o10000))],
  ['runtime.prepare[0].upload_dir.target', step(dir('d'))],
  ['runtime.prepare[0].upload_dir.files[1].target', step(dir('/d', 'a', '../b'))],
  ['runtime.prepare[0].upload_dir.files[0].target', step(dir('/d', '/a'))],
  ['runtime.prepare[0].upload_dir.files[0].target', step(dir('/d', ''))],
  [
    'runtime.eval_prepare.steps[0].upload_file.target',
    runtime({ evalPrepare: { $typeName: 'polar.common.v1.PrepareSteps', steps: [upload('a')] } }),
  ],
  [
    'runtime.prepare[0].upload_dir.files',
    step(dir('/d', ...Array.from({ length: UPLOAD_FILES_MAX + 1 }, (_, i) => `${i}`))),
    /upload an archive/,
  ],
  ['harness.name', without('harness'), /shell, pi/],
  ['harness.name', harness({ name: '' }), /shell, pi/],
  ['harness.name', harness({ name: 'vim' }), /unknown harness vim; there are shell, pi/],
  ['harness.model_name', harness({ modelName: 'x'.repeat(257) })],
  ['harness.model_name', harness({ modelName: 'a\0b' }), /NUL/],
  ['harness.model_pools', harness({ modelPools: ['judge'] }), /pool\//],
  ['harness.model_pools', harness({ modelPools: ['pool/a', 'pool/a'] }), /once/],
  ['harness.model_pools', harness({ modelPools: Array.from({ length: 17 }, (_, i) => `pool/${i}`) }), /16/],
  ['harness.settings.tempo', harness({ settings: { tempo: 1 } }), /unknown key/],
  ['harness.settings.max_tokens', harness({ settings: { max_tokens: 0 } })],
  ['harness.settings.append_system_prompt', claude({ append_system_prompt: 'a\0b' }), /NUL/],
  [
    'harness.settings.append_system_prompt',
    claude({ append_system_prompt: 'é'.repeat(70_000) }),
    /131071 bytes/,
  ],
  ['harness.settings.allowed_tools[1]', claude({ allowed_tools: ['Bash', 'a\0b'] }), /NUL/],
  [
    'harness.settings.disallowed_tools',
    claude({ disallowed_tools: ['x'.repeat(70_000), 'y'.repeat(70_000)] }),
    /together/,
  ],
  ['harness.env.A=', harness({ env: { 'A=': 'x' } })],
  ['harness.command', harness({ name: 'shell', settings: {} }), /must be set/],
  ['harness.name', harness({ name: 'swe_agent' }), /use mini_swe_agent/],
  ['harness.name', harness({ importPath: 'a.ts' }), /must be empty/],
  ['harness.import_path', harness({ name: '', importPath: 'a/../../b.mjs' }), /plugins_dir/],
  ['harness.skills', harness({ skills: [skill('a/SKILL.md')] }), /pi takes no skills; these do: claude_code/],
  [
    'harness.skills',
    codex({ skills: [skill('SKILL.md'), skill('scripts/run.sh')] }),
    /a folder for each skill/,
  ],
  ['harness.skills[0].target', codex({ skills: [skill('../x'), skill('a/SKILL.md')] }), /\.\./],
  ['harness.mcp_servers[0].transport', harness({ mcpServers: [server()] }), /pi takes no MCP servers/],
  ['harness.mcp_servers', codex({ mcpServers: [server(), server()] }), /names that differ/],
  ['harness.mcp_servers[0].url', codex({ mcpServers: [server({ url: 'http://x' })] })],
  ['harness.mcp_servers[0].args[0]', codex({ mcpServers: [server({ args: ['\0'] })] }), /NUL/],
  ['harness.artifacts', harness({ artifacts: Array.from({ length: 17 }, (_, i) => `a${i}`) }), /16/],
  ['harness.artifacts[1]', harness({ artifacts: ['a', '/b/../c'] })],
  [
    'harness.command',
    harness({ command: create(ExecStepSchema, { command: 'x', maxAttempts: 1 }) }),
    /shell/,
  ],
  ['harness.command.command', command({ command: ' ' })],
  ['harness.command.cwd', command({ cwd: 'x' })],
  ['harness.command.env.a b', command({ env: { 'a b': '' } })],
  ['builder.strategy', builder({ strategy: 'x' }), /per_request, prefix_merging/],
  ['builder.strategy', builder({ strategy: '../x.mjs' }), /plugins_dir/],
  ['builder.strategy', builder({ strategy: 'constructor' }), /unknown builder/],
  ['builder.config.x', builder({ config: { x: 1 } }), /unknown key/],
  ['builder.config.truncated', builder({ config: { truncated: 'drop' } }), /"mask"\|"train"/],
  ['builder.config.max_trace_tokens', builder({ config: { max_trace_tokens: 0 } })],
  ['builder.config.options', builder({ config: { options: {} } }), /unknown key/],
  [
    'builder.config.side_call',
    builder({ strategy: 'a/b.mjs', config: { side_call: 'mask' } }),
    /unknown key/,
  ],
  ['sampling.temperature', sampling({ temperature: 2.1 })],
  ['sampling.temperature', sampling({ temperature: Number.NaN })],
  ['sampling.top_p', sampling({ topP: 0 })],
  ['sampling.top_p', sampling({ topP: 1.1 })],
  ['sampling.top_k', sampling({ topK: 0 })],
  ['sampling.top_k', sampling({ topK: -2 })],
  ['sampling.max_tokens', sampling({ maxTokens: 0 })],
  ['sampling.seed_base', sampling({ seedBase: 2 ** 32 - 3 }), /4294967296/],
  ['metadata', top({ metadata: nested() }), /more than FREE_FORM_LEVELS_MAX \(30\) levels/],
  ['harness.settings', harness({ name: 'opencode', settings: { opencode_config: nested() } }), /levels/],
  ['builder.config', builder({ strategy: 'a/b.mjs', config: { options: nested() } }), /levels/],
  // Protobuf carries it, and JSON, in which tasks are shown, does not.
  ['metadata.a.b[1]', top({ metadata: { a: { b: [1, Number.NaN] } } }), /finite/],
  ['queue', top({ queue: '-a' })],
  ['max_running_sessions', top({ maxRunningSessions: 16_385 })],
  ['early_stop.min_usable_sessions', top({ earlyStop: create(EarlyStopSchema) })],
  [
    'early_stop.stragglers',
    top({ earlyStop: create(EarlyStopSchema, { minUsableSessions: 1, stragglers: 7 as Stragglers }) }),
  ],
  [
    'early_stop.grace',
    top({ earlyStop: create(EarlyStopSchema, { minUsableSessions: 1, grace: durationFromMs(-1) }) }),
  ],
  ['callback_url', top({ callbackUrl: 'file:///etc/passwd' })],
  ['callback_url', top({ callbackUrl: `http://h/${'x'.repeat(2_048)}` })],
  [
    '(task)',
    top({ metadata: { a: Array(TASK_VALUES_MAX).fill(null) } }),
    /TASK_VALUES_MAX \(100000\) values/,
  ],
  ['(task)', step(upload('/a', new Uint8Array(TASK_SPEC_BYTES_MAX))), /TASK_SPEC_BYTES_MAX/],
  ['(task)', top({ instruction: 'x'.repeat(TASK_OUTLINE_BYTES_MAX) }), /TASK_OUTLINE_BYTES_MAX/],
  [
    'evaluator.config.verifier_dir',
    (spec) => {
      harbor({ tests_target: '/polar/session/tests' })(spec);
      runtime({ backend: 'process' })(spec);
    },
    /does not isolate/,
  ],
  ...WRONG_EVALUATORS,
];
