import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { reasonOf } from '../../../test/support/reason-of.ts';
import { PolarError } from '../errors.ts';
import { readEvaluator, readEvaluatorFile } from './evaluator-alone.ts';

const TESTS = {
  strategy: 'test_on_output',
  config: { test_command: 'make test', expected_output_json: { a: 'PASSED' }, test_timeout: 100 },
};

describe('an evaluator without its task', () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-evaluator-'));
  });
  after(() => rmSync(folder, { recursive: true }));
  const written = (content: object | string, name = 'evaluator.yaml'): string => {
    const file = join(folder, name);
    writeFileSync(file, typeof content === 'string' ? content : stringify(content));
    return file;
  };

  it('is read from a file of its own, and from a task file whose other parts may be anything', () => {
    const alone = readEvaluatorFile(written({ ...TESTS, env: { A: 'b' } }));
    expect(alone).to.deep.include({ ...TESTS, env: { A: 'b' } });
    const ofTask = readEvaluatorFile(written({ task_id: '?', evaluator: { ...TESTS, env: { A: 'b' } } }));
    expect(ofTask).to.deep.equal(alone);
    expect(readEvaluatorFile(written(JSON.stringify({ ...TESTS, env: { A: 'b' } })))).to.deep.equal(alone);
  });

  it('has the text of its rubric', () => {
    written('Praise care.\n', 'rubric.md');
    const file = written({ strategy: 'rubric', config: { judge: 'a', rubric_path: 'rubric.md' } });
    expect(readEvaluatorFile(file).config).to.deep.equal({ judge: 'a', rubric: 'Praise care.\n' });
  });

  it('is refused with every fault, each by its field', () => {
    const config = { test_command: '', expected_output_json: {}, tests: 1 };
    try {
      readEvaluatorFile(written({ ...TESTS, config }));
      expect.fail('was taken');
    } catch (error) {
      if (!(error instanceof PolarError)) throw error;
      expect(error.reason).to.equal('INVALID_TASK');
      expect(error.fields.map(({ field }) => field)).to.include.members([
        ...[
          'evaluator.config.test_command',
          'evaluator.config.expected_output_json',
          'evaluator.config.tests',
        ],
      ]);
    }
    for (const wrong of ['x: [', 'strategy: a\nx: 1', '- a', 'evaluator: null', { strategy: 'none' }]) {
      expect(
        reasonOf(() => readEvaluatorFile(written(wrong))),
        JSON.stringify(wrong),
      ).to.equal('INVALID_TASK');
    }
    expect(reasonOf(() => readEvaluatorFile(join(folder, 'none.yaml')))).to.equal('INVALID_TASK');
  });

  it('has the time that it grants, and that of preparing', () => {
    const evaluator = readEvaluatorFile(
      written({ ...TESTS, config: { ...TESTS.config, test_timeout: 500 } }),
    );
    expect(durationMs(readEvaluator(evaluator, durationFromMs(60_000)).budget)).to.equal(
      (60 + 4 * 60 + 500) * 1000,
    );
  });
});
