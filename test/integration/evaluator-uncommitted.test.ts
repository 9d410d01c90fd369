// Repositories that `prepare` leaves with changes of its own: they are in the run's sandbox and in the fresh one.
import { expect } from 'chai';
import { Evaluations, exec, PREPARE, REPO, SOLVE } from '../support/evaluations.ts';

/** As `pip install -e .` and `npm install` leave one. */
const UNCOMMITTED = {
  prepare: [
    ...PREPARE,
    exec(`cd ${REPO} && mkdir egg && echo 1 > egg/info && echo more >> keep.txt && ln -s a.py link`),
  ],
};

describe('evaluator, of a repository that has uncommitted changes after `prepare`,', function () {
  this.timeout(60_000);
  let evaluations: Evaluations;
  before(async () => {
    evaluations = await Evaluations.open();
  });
  after(async () => {
    await evaluations.checkClear();
    await evaluations[Symbol.asyncDispose]();
  });

  for (const patch_command of [undefined, 'git add -A; git diff --cached']) {
    const config = patch_command === undefined ? {} : { patch_command };
    it(`grades those of the agent (${patch_command ?? 'all changes'})`, async () => {
      const { reward, evaluation } = await evaluations.evaluated({
        ...{ agent: SOLVE, runtime: UNCOMMITTED, config },
      });
      expect([reward, evaluation?.['patch_files']]).to.deep.equal([1, ['a.py', 'new.txt']]);
    });
  }

  it('knows where the agent has made none', async () => {
    const { evaluation } = await evaluations.evaluated({ runtime: UNCOMMITTED });
    expect(evaluation).to.include({ empty_generation: true, failed_apply_patch: false });
  });

  it('does not take those of the agent for them: what it wrote over is not applied', async () => {
    const agent = `${SOLVE}; echo 2 > egg/info`;
    const { reward, evaluation } = await evaluations.evaluated({ agent, runtime: UNCOMMITTED });
    expect([reward, evaluation?.['failed_apply_patch']]).to.deep.equal([0, true]);
    expect(evaluation?.['patch_files']).to.deep.equal(['a.py', 'egg/info', 'new.txt']);
  });

  it('keeps what it has read, what exclude_patterns name too, whatever comes of it', async () => {
    const agent = `${SOLVE}; git init -q own`;
    const verdict = await evaluations.evaluated({ agent, config: { exclude_patterns: ['a.py'] } });
    const kept = await evaluations.changes(verdict);
    expect(kept).to.deep.include({ repoDir: REPO, patchCommand: '', leftOutFiles: ['own/'], exitCode: 0 });
    expect(Buffer.from(kept.patch).toString()).to.contain('+a = 1').and.to.contain('b/new.txt');
    const none = await evaluations.failed({ agent: SOLVE, config: { rewards_command: 'false' } });
    expect(Buffer.from((await evaluations.changes(none)).patch).toString()).to.contain('+a = 1');
    const gone = await evaluations.changes(await evaluations.evaluated({ agent: 'rm -rf .git' }));
    expect([gone.exitCode > 0, gone.errorTail.includes('git'), gone.patch.length]).to.deep.equal([
      ...[true, true, 0],
    ]);
  });
});
