import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { parseTaskFile } from './task-file.ts';

const TASK = { task_id: 'sum', instruction: 'add', agent: { harness: 'pi' } };

describe('a rubric in a task file', () => {
  const rubric = (config: object): string =>
    stringify({ ...TASK, evaluator: { strategy: 'rubric', config: { judge: 'a', ...config } } });

  it('is a text, or a file of the client that becomes one', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-rubric-'));
    try {
      mkdirSync(join(folder, 'tests'));
      writeFileSync(join(folder, 'tests', 'rubric.md'), 'Praise care.\n');
      const { evaluator } = parseTaskFile(
        rubric({ rubric_path: 'tests/rubric.md' }),
        join(folder, 'task.yaml'),
      );
      expect(evaluator?.config).to.deep.equal({ judge: 'a', rubric: 'Praise care.\n' });
      expect(parseTaskFile(rubric({ rubric: 'Text.' }), 'task.yaml').evaluator?.config).to.deep.equal({
        ...{ judge: 'a', rubric: 'Text.' },
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("a Harbor task's tests in a task file", () => {
  it('are the files of a folder of the client, also where they find the outcome of a rubric', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-harbor-'));
    const read = (evaluator: object) =>
      parseTaskFile(stringify({ ...TASK, evaluator }), join(folder, 'task.yaml')).evaluator;
    try {
      mkdirSync(join(folder, 'tests', 'data'), { recursive: true });
      writeFileSync(join(folder, 'tests', 'test.sh'), 'true', { mode: 0o755 });
      writeFileSync(join(folder, 'tests', 'data', 'a'), 'a');
      const harbor = { strategy: 'harbor', config: { tests_dir: 'tests', verifier_timeout: 5 } };
      const given = read({ ...harbor, env: { A: '1' } });
      expect(given?.config).to.deep.equal({ verifier_timeout: 5 });
      const files = given?.files.map(({ target, mode, content }) => [target, mode, content.length]);
      expect(files).to.deep.equal([
        ['data/a', 0o644, 1],
        ['test.sh', 0o755, 4],
      ]);
      expect(given?.env).to.deep.equal({ A: '1' });
      const rubric = { judge: 'a', rubric: 'b', outcome: harbor };
      const judged = read({ strategy: 'rubric', config: rubric });
      expect(judged?.config).to.deep.equal({
        ...rubric,
        outcome: { strategy: 'harbor', config: { verifier_timeout: 5 } },
      });
      expect(judged?.files).to.deep.equal(given?.files);
      // An evaluator of the operator's may have them, too, and need not.
      const ours = { strategy: 'team/own.mjs', config: { tests_dir: 'tests', options: { a: 1 } } };
      const own = read(ours);
      expect([own?.config, own?.files]).to.deep.equal([{ options: { a: 1 } }, given?.files]);
      expect(read({ strategy: 'team/own.mjs' })?.files).to.deep.equal([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
