import { clone, create, type JsonObject } from '@bufbuild/protobuf';
import { durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import {
  BudgetsSchema,
  EvaluatorSpecSchema,
  HarnessSpecSchema,
  type TaskSpec,
  TaskSpecSchema,
} from '../../../gen/ts/polar/common/v1/task_pb.js';
import { harbor, skill } from '../../../test/support/faulty-evaluators.ts';
import {
  codex,
  command,
  dir,
  exec,
  good,
  upload,
  WRONG,
  without,
} from '../../../test/support/faulty-specs.ts';
import { completeTaskSpec, outlineOf, readTaskSpec } from './task-spec.ts';

describe('task spec', () => {
  it('takes a good one', () => {
    expect(readTaskSpec(good()).faults).to.deep.equal([]);
    const shell = good();
    command({ cwd: '/data' })(shell);
    without('evaluator')(shell);
    without('runtime')(shell);
    expect(readTaskSpec(shell).faults).to.deep.equal([]);
  });

  for (const [i, [field, change, description = /./]] of WRONG.entries()) {
    it(`refuses a wrong ${field} (${i})`, () => {
      const spec = completeTaskSpec(good());
      change(spec);
      const { faults } = readTaskSpec(spec);
      expect(faults.map((fault) => fault.field)).to.deep.equal([field]);
      expect(faults[0]?.description).to.match(description);
    });
  }

  it('takes no more of one whose harness runs elsewhere than can be done there', () => {
    const external = good();
    without('runtime')(external);
    const { modelName = '', modelPools = [] } = external.harness ?? {};
    external.harness = create(HarnessSpecSchema, { name: 'external', modelName, modelPools });
    external.evaluator = create(EvaluatorSpecSchema, { strategy: 'session_completed' });
    const { spec, faults } = readTaskSpec(external);
    expect([spec.runtime, faults]).to.deep.equal([undefined, []]);
    const fieldsOf = (change: (spec: TaskSpec) => void): string[] => {
      const wrong = clone(TaskSpecSchema, external);
      change(wrong);
      const found = readTaskSpec(wrong).faults;
      for (const { description } of found) expect(description).to.contain('is not for harness external');
      return found.map(({ field }) => field);
    };
    expect(fieldsOf((wrong) => Object.assign(wrong, { runtime: good().runtime }))).to.deep.equal(['runtime']);
    const of = { strategy: 'test_on_output', config: good().evaluator?.config ?? {} };
    const sandboxed = create(EvaluatorSpecSchema, of);
    expect(fieldsOf((wrong) => Object.assign(wrong, { evaluator: sandboxed }))).to.deep.equal([
      'evaluator.strategy',
    ]);
    const rubric = { strategy: 'rubric', config: { rubric: 'r', judge: 'j', outcome: of } };
    const judged = create(EvaluatorSpecSchema, rubric);
    expect(fieldsOf((wrong) => Object.assign(wrong, { evaluator: judged }))).to.deep.equal([
      'evaluator.config.outcome.strategy',
    ]);
    const own = create(EvaluatorSpecSchema, { strategy: 'team/own.mjs' });
    expect(fieldsOf((right) => Object.assign(right, { evaluator: own }))).to.deep.equal([]);
    const files = [{ target: 'test.sh', mode: 0o644 }];
    const withFiles = create(EvaluatorSpecSchema, { strategy: 'team/own.mjs', files });
    expect(fieldsOf((wrong) => Object.assign(wrong, { evaluator: withFiles }))).to.deep.equal([
      'evaluator.files',
    ]);
    const started = create(HarnessSpecSchema, {
      ...{ name: 'external', command: { command: 'x' }, settings: { a: 1 }, env: { A: 'b' } },
      ...{ mcpServers: [{ name: 'm', transport: 'stdio', command: 'x' }], artifacts: ['a'] },
      skills: [skill('s/SKILL.md')],
    });
    const all = ['settings', 'env', 'command', 'mcp_servers', 'skills', 'artifacts'];
    expect(
      fieldsOf((wrong) => Object.assign(wrong, { harness: started, maxRunningSessions: 2 })),
    ).to.deep.equal(['max_running_sessions', ...all.map((name) => `harness.${name}`)]);
  });

  it('tells all faults at once', () => {
    const spec = completeTaskSpec(good());
    for (const [, change] of [WRONG[0]!, WRONG[4]!, WRONG[6]!, WRONG[13]!]) change(spec);
    const fields = readTaskSpec(spec).faults.map((fault) => fault.field);
    expect(fields).to.have.members(['task_id', 'instruction', 'num_samples', 'runtime.backend']);
  });

  it('fills in every default, and changes nothing that is set', () => {
    const spec = completeTaskSpec(
      create(TaskSpecSchema, { taskId: 't', runtime: { prepare: [exec(), upload('/a'), dir('/d', 'x')] } }),
    );
    expect(spec).to.include({ numSamples: 1, maxAttempts: 3, dispatchPriority: 0 });
    const seconds = (['prepare', 'run', 'build', 'evaluate'] as const).map((s) => spec.budgets?.[s]?.seconds);
    expect(seconds).to.deep.equal([300n, 600n, 120n, 300n]);
    expect(spec.runtime?.workdir).to.equal('/polar/session/workspace');
    expect(spec.builder?.strategy).to.equal('per_request');
    expect(spec.evaluator).to.equal(undefined);
    const [first, second, third] = spec.runtime?.prepare.map((one) => one.step) ?? [];
    expect(first?.case === 'exec' && first.value.maxAttempts).to.equal(1);
    expect(second?.case === 'uploadFile' && second.value.mode).to.equal(0o644);
    expect(third?.case === 'uploadDir' && third.value.files[0]?.mode).to.equal(0o644);

    const given = good();
    given.maxAttempts = 5;
    given.budgets = completeTaskSpec(good()).budgets!;
    given.budgets.run = durationFromMs(1_000);
    const copy = clone(TaskSpecSchema, given);
    const completed = completeTaskSpec(given);
    expect(given).to.deep.equal(copy);
    expect(completed).to.include({ numSamples: 4, maxAttempts: 5 });
    expect(completed.budgets?.run).to.deep.equal(durationFromMs(1_000));
  });

  it('gives grading by default what the evaluator is granted, and its sandbox', () => {
    const seconds = (strategy: string, config: object, given: object = {}): number => {
      const spec = completeTaskSpec(
        create(TaskSpecSchema, {
          taskId: 't',
          evaluator: { strategy, config: config as JsonObject },
          ...given,
        }),
      );
      return durationMs(spec.budgets!.evaluate!) / 1000;
    };
    const tests = { test_command: 'true', expected_output_json: { a: 'PASSED' } };
    expect(seconds('session_completed', {})).to.equal(300);
    expect(seconds('test_on_output', tests)).to.equal(300 + 4 * 60 + 1200);
    expect(seconds('test_on_output', { ...tests, test_timeout: 60, apply_timeout: 10 })).to.equal(400);
    expect(seconds('test_on_output', { ...tests, rewards_command: 'true', rewards_timeout: 7 })).to.equal(
      1747,
    );
    expect(seconds('test_on_output', tests, { budgets: { prepare: durationFromMs(10_000) } })).to.equal(1450);
    expect(seconds('test_on_output', tests, { budgets: { evaluate: durationFromMs(10_000) } })).to.equal(10);
    expect(seconds('test_on_output', { ...tests, test_timeout: 86_400 })).to.equal(86_400);
    expect(seconds('test_on_output', { test_timeout: 'long' }), 'faulty').to.equal(300);
    const rubric = { rubric: 'good', judge: 'j', outcome: { strategy: 'test_on_output', config: tests } };
    expect(seconds('rubric', rubric)).to.equal(1740 + 3 * 60);
    expect(seconds('verifier_result_file', { result_file: '/r.json' })).to.equal(300);
    const written = { result_file: '/r.json', command: 'x', command_timeout: 7 };
    expect(seconds('verifier_result_file', written)).to.equal(300 + 3 * (30 + 7));
    expect(seconds('a/b.mjs', { timeout: 60 })).to.equal(360);
    const outcome = { strategy: 'a/b.mjs' };
    expect(seconds('rubric', { ...rubric, outcome })).to.equal(600 + 3 * 60);
    expect(seconds('harbor', {})).to.equal(300 + 3 * (30 + 120));
    expect(seconds('rubric', { ...rubric, outcome: { strategy: 'harbor' } })).to.equal(750 + 3 * 60);
    const instance = { instance_id: 'a', repo: 'pallets/flask', FAIL_TO_PASS: ['t'], PASS_TO_PASS: [] };
    expect(seconds('swebench_harness', { instance, test_command: 'x' })).to.equal(300 + 6 * 60 + 1200);
    expect(seconds('swebench_harness', { instance }), 'faulty').to.equal(300);
  });

  it('refuses tests that are given more time than grading', () => {
    const spec = good();
    spec.evaluator!.config = { ...spec.evaluator!.config, test_timeout: 400 };
    expect(readTaskSpec(spec).faults).to.deep.equal([]);
    spec.budgets = create(BudgetsSchema, { evaluate: durationFromMs(300_000) });
    const [fault, ...others] = readTaskSpec(spec).faults;
    expect(others).to.deep.equal([]);
    expect(fault?.field).to.equal('evaluator.config.test_timeout');
    expect(fault?.description).to.match(/400 s .* budgets.evaluate, which is 300 s/);
    const below = (strategy: string, config: object) => {
      const outcome = { strategy, config };
      Object.assign(spec.evaluator!, { strategy: 'rubric', config: { rubric: 'r', judge: 'j', outcome } });
      return readTaskSpec(spec).faults.map((one) => one.field);
    };
    const tests = { test_command: 'x', expected_output_json: { a: 'PASSED' } };
    const at = 'evaluator.config.outcome.config';
    expect(below('test_on_output', { ...tests, test_timeout: 400 })).to.deep.equal([`${at}.test_timeout`]);
    expect(below('a/b.mjs', { timeout: 400 })).to.deep.equal([`${at}.timeout`]);
    expect(below('a/b.mjs', { timeout: 200 })).to.deep.equal([]);
  });

  it('has an outline without file contents', () => {
    const outline = outlineOf(good());
    const [, file, folder] = outline.runtime?.prepare.map((one) => one.step) ?? [];
    expect(file?.case === 'uploadFile' && file.value).to.include({ target: '/data/a' });
    expect(file?.case === 'uploadFile' && file.value.content.length).to.equal(0);
    expect(folder?.case === 'uploadDir' && folder.value.files).to.deep.equal([]);
    const skilled = good();
    codex({ skills: [skill('a/SKILL.md')] })(skilled);
    const [kept] = outlineOf(skilled).harness?.skills ?? [];
    expect([kept?.target, kept?.content.length]).to.deep.equal(['a/SKILL.md', 0]);
    const graded = good();
    harbor()(graded);
    expect(readTaskSpec(graded).faults).to.deep.equal([]);
    const [test] = outlineOf(graded).evaluator?.files ?? [];
    expect([test?.target, test?.content.length]).to.deep.equal(['test.sh', 0]);
  });
});
