import { create, type JsonObject } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { SessionRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { FactSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { Stage } from './budgets.ts';
import { applyFact } from './facts.ts';
import { refOf, SessionState } from './session.ts';
import { workOf } from './work.ts';

describe('work that a task’s evaluator asks for', () => {
  const kindOf = (stage: Stage, strategy: string, config: JsonObject) => {
    const spec = create(TaskSpecSchema, {
      instruction: 'Add the numbers.',
      budgets: { evaluate: durationFromMs(1000) },
      runtime: { evalPrepare: { steps: [{ step: { case: 'exec', value: { command: 'make' } } }] } },
      evaluator: { strategy, config },
      metadata: { answer: 3 },
    });
    return workOf(create(SessionRecordSchema, { session: { sampleIndex: 0 } }), spec, stage).kind;
  };
  const prepared = (strategy: string, config: JsonObject = {}) => {
    const kind = kindOf('prepare', strategy, config);
    if (kind.case !== 'prepare') throw new Error(`is ${kind.case}`);
    return [kind.value.evaluateTimeoutMs > 0n, kind.value.runtime?.evalPrepare !== undefined];
  };
  const rubric = (outcome?: JsonObject): JsonObject => ({
    ...{ judge: 'a', rubric: 'b' },
    ...(outcome && { outcome }),
  });
  const tests = { test_command: 'x', expected_output_json: {} };

  it('has a sandbox made ahead where the outcome is found in one', () => {
    expect(prepared('test_on_output', tests)).to.deep.equal([true, true]);
    expect(prepared('rubric', rubric({ strategy: 'test_on_output', config: tests }))).to.deep.equal([
      true,
      true,
    ]);
    expect(prepared('swebench_harness')).to.deep.equal([true, true]);
    expect(prepared('session_completed')).to.deep.equal([false, false]);
    expect(prepared('rubric', rubric())).to.deep.equal([false, false]);
    expect(prepared('rubric', rubric({ strategy: 'session_completed' }))).to.deep.equal([false, false]);
  });

  it('alone has its configuration: no sandbox is made of what tells the answer', () => {
    const config = { instance: { test_patch: 'secret' } };
    const told = (stage: Stage): boolean => {
      const { value } = kindOf(stage, 'swebench_harness', config);
      return JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? `${one}` : one)).includes('secret');
    };
    expect((['prepare', 'run', 'build', 'evaluate'] as const).filter(told)).to.deep.equal(['evaluate']);
  });

  it('has the instruction where a judge is asked or a plug-in grades, and the metadata for that', () => {
    const shown = (strategy: string, config: JsonObject) => {
      const kind = kindOf('evaluate', strategy, config);
      if (kind.case !== 'evaluate') throw new Error(`is ${kind.case}`);
      return [kind.value.instruction, kind.value.metadata];
    };
    expect(shown('rubric', rubric())).to.deep.equal(['Add the numbers.', undefined]);
    expect(shown('test_on_output', tests)).to.deep.equal(['', undefined]);
    const all = ['Add the numbers.', { answer: 3 }];
    expect(shown('team/own.mjs', {})).to.deep.equal(all);
    expect(shown('rubric', rubric({ strategy: 'team/own.mjs' }))).to.deep.equal(all);
  });
});

describe('work for a harness executor', () => {
  it('says how the sandbox that is ready sees the LLM proxy', () => {
    const record = create(SessionRecordSchema, {
      session: { state: SessionState.PREPARING, attempt: 1, nodeId: 'n' },
    });
    const fact = create(FactSchema, {
      ref: refOf(record),
      kind: { case: 'ready', value: { runtimeId: 'rt', proxyUrl: 'http://127.0.0.1:4141' } },
    });
    const spec = create(TaskSpecSchema);
    const { kind } = workOf(applyFact(record, spec, fact, 0)!, spec, 'run');
    expect(kind.case).to.equal('run');
    expect(kind.value).to.include({ runtimeId: 'rt', proxyUrl: 'http://127.0.0.1:4141' });
  });
});
