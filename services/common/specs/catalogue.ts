// What the mesh can do, by name. Submit refuses other names; each service proves at start that it implements its list.

import type { FieldFault } from '../errors.ts';

export const BACKENDS = ['bubblewrap', 'process', 'docker', 'podman', 'apptainer'] as const;
export const HARNESSES = [
  'shell',
  'pi',
  'claude_code',
  'codex',
  'gemini_cli',
  'qwen_code',
  'opencode',
  'mini_swe_agent',
  'openclaw',
  'hermes',
  'openhands_sdk',
] as const;
/** The harness of sessions that are worked on elsewhere: no node starts one, and they have no sandbox. */
export const EXTERNAL = 'external';
/** Harnesses that are known, and why no node has them. */
export const NOT_INSTALLABLE: Readonly<Record<string, string>> = {
  swe_agent:
    'its releases are not on PyPI (sweagent 0.0.1 there is of 2024 and has no command): give it as a plug-in (harness.import_path), or use mini_swe_agent',
};
export const BUILDERS = ['per_request', 'prefix_merging'] as const;
export const EVALUATORS = [
  'session_completed',
  'test_on_output',
  'rubric',
  'harbor',
  'verifier_result_file',
  'swebench_harness',
  'math_judge',
  'response_match',
] as const;

/** What `test_on_output` reads of test commands, by who prints it. */
export const TEST_FORMATS = ['pytest', 'go', 'cargo', 'jest', 'tap', 'junit', 'unittest'] as const;

/**
 * What `swebench_harness` reads of logs, by SWE-bench's own names; `parse_log_pytest_pydantic` is SWE-Gym's, and
 * `parse_log_lighthouse_json` has no name in SWE-bench.
 */
export const LOG_PARSERS = [
  'parse_log_pytest',
  'parse_log_pytest_options',
  'parse_log_pytest_v2',
  'parse_log_django',
  'parse_log_seaborn',
  'parse_log_sympy',
  'parse_log_matplotlib',
  'parse_log_pytest_pydantic',
  'parse_log_redis',
  'parse_log_jq',
  'parse_log_doctest',
  'parse_log_micropython_test',
  'parse_log_googletest',
  'parse_log_gotest',
  'parse_log_maven',
  'parse_log_ant',
  'parse_log_gradle_custom',
  'parse_log_phpunit',
  'parse_log_minitest',
  'parse_log_cucumber',
  'parse_log_ruby_unit',
  'parse_log_rspec_transformed_json',
  'parse_log_cargo',
  'parse_log_jest',
  'parse_log_jest_json',
  'parse_log_vitest',
  'parse_log_tap',
  'parse_log_karma',
  'parse_log_calypso',
  'parse_log_carbon',
  'parse_log_grommet',
  'parse_log_emotion',
  'parse_log_highlightjs',
  'parse_log_prismjs',
  'parse_log_cypress',
  'parse_log_quarto_cli',
  'parse_plotly_js',
  'parse_log_next_v1',
  'parse_log_next_v2',
  'parse_log_lighthouse_mocha',
  'parse_log_lighthouse_json',
  'parse_log_chart_js',
  'parse_log_marked',
  'parse_log_p5js',
  'parse_log_eslint',
  'parse_log_bpmn_js',
  'parse_log_openlayers',
] as const;

/** Evaluators that grade in a sandbox of their own: it is made ahead of them. */
export const GRADES_IN_SANDBOX: readonly EvaluatorName[] = ['test_on_output', 'swebench_harness'];
/** Evaluators that look at how the run ended and at what was said alone, so that there need be no sandbox. */
export const NEEDS_NO_SANDBOX: readonly EvaluatorName[] = [
  'session_completed',
  'math_judge',
  'response_match',
];
/** Evaluators that ask a judge of the topology. */
export const ASKS_JUDGE: readonly EvaluatorName[] = ['rubric'];

export type BackendName = (typeof BACKENDS)[number];
export type HarnessName = (typeof HARNESSES)[number];
export type BuilderName = (typeof BUILDERS)[number];
export type EvaluatorName = (typeof EVALUATORS)[number];
export type TestFormat = (typeof TEST_FORMATS)[number];
export type LogParser = (typeof LOG_PARSERS)[number];

export const DEFAULT_WORKDIR = '/polar/session/workspace';

export type McpTransport = 'stdio' | 'sse' | 'streamable_http';
const ALL_TRANSPORTS = ['stdio', 'sse', 'streamable_http'] as const;

/** Over what each harness reaches MCP servers that a task gives it. */
export const MCP_TRANSPORTS: Readonly<Record<HarnessName, readonly McpTransport[]>> = {
  shell: [],
  pi: [],
  claude_code: ALL_TRANSPORTS,
  codex: ['stdio', 'streamable_http'],
  gemini_cli: ALL_TRANSPORTS,
  qwen_code: ALL_TRANSPORTS,
  opencode: ALL_TRANSPORTS,
  mini_swe_agent: [],
  openclaw: [],
  hermes: [],
  openhands_sdk: ALL_TRANSPORTS,
};

/** Harnesses that find skills which a task gives them. */
export const TAKES_SKILLS: readonly HarnessName[] = [
  'claude_code',
  'codex',
  'gemini_cli',
  'qwen_code',
  'opencode',
  'openhands_sdk',
];

/** "shell, pi" */
export const listed = (names: readonly string[]): string => names.join(', ');

export interface AskedFor {
  readonly storageMb: number;
  /** All rules of its network. */
  readonly egress: readonly unknown[];
}

/** What a backend does not have, as faults by field of a runtime; none where it is left to the node, or to a plug-in. */
export function unofferedBy(backend: string, { storageMb, egress }: AskedFor): FieldFault[] {
  if (backend === 'docker' || !(BACKENDS as readonly string[]).includes(backend)) return [];
  const why = `${backend} does not offer it`;
  return [
    ...(storageMb > 0 && backend === 'process'
      ? [{ field: 'storage_mb', description: `${why}, bubblewrap, docker, podman and apptainer do` }]
      : []),
    ...(egress.length > 0 && backend === 'process'
      ? [{ field: 'network', description: 'process has the network of the host, and can list nothing' }]
      : []),
  ];
}
