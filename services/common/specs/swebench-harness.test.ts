import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { PolarError } from '../errors.ts';
import { parserNamed, parserOfRepository } from './log-parsers.ts';
import { logParserOf, swebenchHarnessConfig } from './swebench-harness.ts';
import { parseTaskFile } from './task-file.ts';

const ROW = {
  instance_id: 'a',
  repo: 'Pallets/Flask',
  FAIL_TO_PASS: ['t'],
  PASS_TO_PASS: '[]',
  version: '1',
};

describe('a row of SWE-bench', () => {
  it('is a part of the task file, or a file beside it', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-row-'));
    const evaluatorOf = (strategy: string, config: object) => {
      const agent = { harness: 'shell', custom_shell: { command: 'true' } };
      const evaluator = { strategy, config };
      const text = stringify({ task_id: 'row', instruction: 'Mend it.', agent, evaluator });
      return parseTaskFile(text, join(folder, 'task.yaml')).evaluator?.config;
    };
    const own = (config: object) => ({ test_command: 'pytest -rA', ...config });
    const configOf = (config: object) =>
      swebenchHarnessConfig.parse(evaluatorOf('swebench_harness', own(config))).instance;
    const outcomeOf = (config: object) => {
      const outcome = { strategy: 'swebench_harness', config: own(config) };
      return evaluatorOf('rubric', { judge: 'a', rubric: 'b', outcome })?.['outcome'];
    };
    try {
      writeFileSync(join(folder, 'row.json'), JSON.stringify(ROW));
      const read = { ...ROW, PASS_TO_PASS: [] };
      expect(configOf({ instance: ROW })).to.deep.equal(read);
      expect(configOf({ instance_path: 'row.json' })).to.deep.equal(read);
      expect(outcomeOf({ instance_path: 'row.json' })).to.have.nested.property('config.instance');
      expect(() => outcomeOf({ instance_path: 'none.json' })).to.throw(
        /evaluator.config.outcome.config.instance_path: ENOENT/,
      );
      expect(() => configOf({ instance_path: 'none.json' })).to.throw(PolarError, 'instance_path: ENOENT');
      expect(() => configOf({ instance: ROW, instance_path: 'row.json' })).to.throw(
        /instance_path: unknown key/,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('is read by the parser that it names, or that its repository has', () => {
    const parser = (more: object): string =>
      logParserOf(swebenchHarnessConfig.parse({ test_command: 'x', instance: ROW, ...more }));
    expect(parser({})).to.equal('parse_log_pytest');
    expect(parser({ instance: { ...ROW, log_parser: 'parse_log_sphinx' } })).to.equal('parse_log_pytest_v2');
    expect(parser({ log_parser: 'parse_log_sympy' })).to.equal('parse_log_sympy');
    expect(parserOfRepository('pydantic/pydantic')).to.equal('parse_log_pytest_pydantic');
    expect(parserNamed('parse_log_toString')).to.equal(undefined);
  });
});
