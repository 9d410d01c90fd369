// Specs with an evaluator that is wrong in one field, and what is to be said of it.
import { create, type JsonObject } from '@bufbuild/protobuf';
import {
  type EvaluatorSpec,
  type TaskSpec,
  type UploadFile,
  UploadFileSchema,
} from '../../gen/ts/polar/common/v1/task_pb.js';
import { DEFAULT_WORKDIR } from '../../services/common/specs/catalogue.ts';

export const skill = (target: string): UploadFile =>
  create(UploadFileSchema, { target, content: Buffer.from('x') });
const RESULTS = { a: 'PASSED' };

export type Change = (spec: TaskSpec) => void;
export const evaluator =
  (over: Partial<EvaluatorSpec>): Change =>
  (spec) =>
    void Object.assign(spec.evaluator ?? {}, over);
const rubric = (config: JsonObject, files: readonly string[] = []): Change =>
  evaluator({
    strategy: 'rubric',
    config: { judge: 'a', rubric: 'b', ...config },
    files: files.map(skill),
  });
export const harbor = (config: JsonObject = {}, files: readonly string[] = ['test.sh']): Change =>
  evaluator({ strategy: 'harbor', config, files: files.map(skill) });
const resultFile = (config: JsonObject): Change => evaluator({ strategy: 'verifier_result_file', config });
const ROW = { instance_id: 'a', repo: 'pallets/flask', FAIL_TO_PASS: '["t"]', PASS_TO_PASS: [] };
const swebench = (row: JsonObject, config: JsonObject = { test_command: 'x' }): Change =>
  evaluator({ strategy: 'swebench_harness', config: { instance: { ...ROW, ...row }, ...config } });
const math = (config: JsonObject): Change => evaluator({ strategy: 'math_judge', config });
const match = (config: JsonObject): Change => evaluator({ strategy: 'response_match', config });

export const nested = (): JsonObject => JSON.parse(`${'{"a":'.repeat(30)}{}${'}'.repeat(30)}`);

export const WRONG_EVALUATORS: readonly [field: string, change: Change, description?: RegExp][] = [
  [
    'evaluator.config.test_command',
    evaluator({ config: { test_command: 'x'.repeat(131_072), expected_output_json: RESULTS } }),
    /at most 131071 bytes/,
  ],
  ['evaluator.strategy', evaluator({ strategy: 'x' }), /session_completed, test_on_output, rubric/],
  ['evaluator.strategy', evaluator({ strategy: '' })],
  ['evaluator.strategy', evaluator({ strategy: '../x.mjs' }), /plugins_dir/],
  ['evaluator.config.option', evaluator({ strategy: 'a/b.mjs', config: { option: 1 } }), /unknown key/],
  ['evaluator.config.timeout', evaluator({ strategy: 'a/b.mjs', config: { timeout: 0 } })],
  ['evaluator.config.test_command', evaluator({ config: { expected_output_json: RESULTS } })],
  [
    'evaluator.config.repo_dir',
    evaluator({ config: { test_command: 'x', expected_output_json: RESULTS, repo_dir: 'relative' } }),
  ],
  [
    'evaluator.config.expected_output_json',
    evaluator({ config: { test_command: 'x', expected_output_json: {} } }),
    /must name a test/,
  ],
  [
    'evaluator.config.expected_output_json',
    evaluator({ config: { test_command: 'x', expected_output_json: 'PASSED' } }),
    /must be an object of test names/,
  ],
  [
    'evaluator.config.expected_output_json.test_a',
    evaluator({ config: { test_command: 'x', expected_output_json: '{"test_a": "passed"}' } }),
    /"PASSED"/,
  ],
  [
    'evaluator.config.test_format',
    evaluator({ config: { test_command: 'x', expected_output_json: RESULTS, test_format: 'mocha' } }),
    /"pytest"\|"go"/,
  ],
  [
    'evaluator.config.expected_output_json.y.py::a',
    evaluator({
      config: { test_command: 'x', expected_output_json: { 'x.py::a': 'PASSED', 'y.py::a': 'FAILED' } },
    }),
    /one test with x\.py::a/,
  ],
  ['evaluator.env.-', evaluator({ env: { '-': '' } })],
  ['evaluator.config.rubric', rubric({ rubric: ' ' })],
  ['evaluator.config.judge', rubric({ judge: '' })],
  ['evaluator.config.judge_base_url', rubric({ judge_base_url: 'http://10.0.0.1' }), /unknown key/],
  ['evaluator.config.rubric_coefficient', rubric({ rubric_coefficient: -1 })],
  ['evaluator.config.judge_max_retries', rubric({ judge_max_retries: 11 })],
  ['evaluator.config.max_section_chars', rubric({ max_section_chars: 200_001 })],
  ['evaluator.config.outcome.strategy', rubric({ outcome: { strategy: 'rubric' } })],
  ['evaluator.config.outcome.strategy', rubric({ outcome: { strategy: '../x.mjs' } })],
  [
    'evaluator.config.outcome.config.option',
    rubric({ outcome: { strategy: 'a/b.mjs', config: { option: 1 } } }),
    /unknown key/,
  ],
  ['evaluator.files', evaluator({ files: [skill('test.sh')] }), /harbor and plug-ins alone/],
  ['evaluator.config.result_file', resultFile({})],
  ['evaluator.config.result_file', resultFile({ result_file: 'r.json' }), /absolute path/],
  ['evaluator.config.result_file', resultFile({ result_file: DEFAULT_WORKDIR, command: 'x' }), /the workdir/],
  ['evaluator.config.reward_key', resultFile({ result_file: '/r.json', reward_key: '' })],
  ['evaluator.config.command', resultFile({ result_file: '/r.json', command: '' })],
  ['evaluator.files', harbor({}, []), /tests_dir/],
  ['evaluator.files', harbor({}, ['run.sh']), /no test\.sh/],
  ['evaluator.files[1].target', harbor({}, ['test.sh', '../x']), /\.\./],
  ['evaluator.config.tests_dir', harbor({ tests_dir: '/srv/tests' }), /unknown key/],
  ['evaluator.config.tests_target', harbor({ tests_target: '/' }), /absolute path/],
  ['evaluator.config.tests_target', harbor({ tests_target: '/a/../b' }), /absolute path/],
  ['evaluator.config.tests_target', harbor({ tests_target: '/polar/session' }), /holds the workdir/],
  ['evaluator.config.verifier_dir', harbor({ tests_target: '/logs' }), /must not lie in tests_target/],
  [
    'evaluator.config.outcome.config.verifier_dir',
    rubric({ outcome: { strategy: 'harbor', config: { verifier_dir: DEFAULT_WORKDIR } } }, ['test.sh']),
    /holds the workdir/,
  ],
  [
    'evaluator.config.outcome.config.rewards_command',
    rubric({
      outcome: {
        strategy: 'test_on_output',
        config: { test_command: 'x', expected_output_json: RESULTS, rewards_command: 'x' },
      },
    }),
    /unknown key/,
  ],
  ['evaluator.config.instance', evaluator({ strategy: 'swebench_harness', config: {} }), /must be a row/],
  ['evaluator.config.instance', swebench({}, { test_command: 'x', instance: '{' }), /must be a row/],
  ['evaluator.config.instance.FAIL_TO_PASS', swebench({ FAIL_TO_PASS: 't' }), /list of tests/],
  ['evaluator.config.instance.FAIL_TO_PASS', swebench({ FAIL_TO_PASS: [] }), /must name a test/],
  ['evaluator.config.instance.test_patch', swebench({ test_patch: 'x' }), /unified diff/],
  ['evaluator.config.instance.eval_script', swebench({ eval_script: 'pytest' }, {}), /Start Test Output/],
  ['evaluator.config.test_command', swebench({}, {}), /no eval_script/],
  [
    'evaluator.config.instance.instance_id',
    swebench({ repo: 'jekyll/jekyll', instance_id: 'jekyll__jekyll-1' }),
    /for which parse_log_jekyll is known, or give log_parser/,
  ],
  [
    'evaluator.config.instance.version',
    swebench({ log_parser: 'parse_log_lighthouse', version: 'x' }),
    /for which parse_log_lighthouse is known/,
  ],
  [
    'evaluator.config.log_parser',
    swebench({ repo: 'a/b' }),
    /none is known for a\/b; there are parse_log_pytest,/,
  ],
  [
    'evaluator.config.log_parser',
    swebench({}, { test_command: 'x', log_parser: 'parse_log_go' }),
    /not known/,
  ],
  ['evaluator.config.instance.log_parser', swebench({ log_parser: 'constructor' }), /not known/],
  ['evaluator.config.instance.base_commit', swebench({ base_commit: 'a\0' }), /NUL/],
  ['evaluator.config.repo_dir', swebench({}, { test_command: 'x', repo_dir: '/a\0' }), /NUL/],
  [
    'evaluator.config.exclude_patterns[1]',
    swebench({}, { test_command: 'x', exclude_patterns: ['a', '\0'] }),
    /NUL/,
  ],
  ['evaluator.config.instance.eval_type', swebench({ eval_type: 'all' })],
  ['evaluator.config.answer[0]', math({}), /must be a text or a number/],
  ['evaluator.config.answer[0]', math({ answer: '$ $' }), /a letter or a digit/],
  ['evaluator.config.answer', math({ answer: [] })],
  ['evaluator.config.answer[1]', math({ answer: [1, 'x'.repeat(1001)] }), /at most 1000/],
  ['evaluator.config.answer[0]', math({ answer: Number('9007199254740993') }), /must be a text, as it has/],
  ['evaluator.config.answer[0]', math({ answer: 1 / 3 }), /more than 15 digits/],
  ['evaluator.config.format_bonus', math({ answer: 1, format_bonus: 2 })],
  ['evaluator.config.contains', match({}), /must hold a text/],
  [
    'evaluator.config.patterns[1]',
    match({ patterns: ['a', '('] }),
    /is no regular expression: .*Unterminated/,
  ],
  ['evaluator.config.reward', match({ contains: ['a'], reward: 1_000_001 })],
  [
    'evaluator.config',
    evaluator({ config: { test_command: 'x', expected_output_json: nested() } }),
    /levels/,
  ],
];
