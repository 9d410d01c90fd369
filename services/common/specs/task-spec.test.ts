import { clone, create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import {
  codex,
  command,
  dir,
  exec,
  good,
  skill,
  upload,
  WRONG,
  without,
} from '../../../test/support/faulty-specs.ts';
import { checkTaskSpec, completeTaskSpec, outlineOf } from './task-spec.ts';

describe('task spec', () => {
  it('takes a good one', () => {
    expect(checkTaskSpec(completeTaskSpec(good()))).to.deep.equal([]);
    const shell = good();
    command({ cwd: '/data' })(shell);
    without('evaluator')(shell);
    without('runtime')(shell);
    expect(checkTaskSpec(completeTaskSpec(shell))).to.deep.equal([]);
  });

  for (const [i, [field, change, description = /./]] of WRONG.entries()) {
    it(`refuses a wrong ${field} (${i})`, () => {
      const spec = completeTaskSpec(good());
      change(spec);
      const faults = checkTaskSpec(spec);
      expect(faults.map((fault) => fault.field)).to.deep.equal([field]);
      expect(faults[0]?.description).to.match(description);
    });
  }

  it('tells all faults at once', () => {
    const spec = completeTaskSpec(good());
    for (const [, change] of [WRONG[0]!, WRONG[4]!, WRONG[6]!, WRONG[13]!]) change(spec);
    const fields = checkTaskSpec(spec).map((fault) => fault.field);
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
  });
});
