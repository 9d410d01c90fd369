import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { PolarError } from '../errors.ts';
import { parserNamed, parserOfRepository } from './log-parsers.ts';
import { isFailOnly, logParserOf, swebenchHarnessConfig } from './swebench-harness.ts';
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

  it('is read by another parser in some repositories, as its version or number says', () => {
    const parser = (row: object): string =>
      logParserOf(swebenchHarnessConfig.parse({ test_command: 'x', instance: { ...ROW, ...row } }));
    expect(parser({ repo: 'hashicorp/terraform' })).to.equal('parse_log_gotest');
    expect(parser({ repo: 'a/b', log_parser: 'parse_log_react_pdf' })).to.equal('parse_log_carbon');
    const rows = [
      ['jekyll/jekyll', { instance_id: 'jekyll__jekyll-9141' }, 'parse_log_minitest'],
      ['jekyll/jekyll', { instance_id: 'jekyll__jekyll-8771' }, 'parse_log_cucumber'],
      [
        'immutable-js/immutable-js',
        { instance_id: 'immutable-js__immutable-js-2005' },
        'parse_log_jest_json',
      ],
      ['alibaba-fusion/next', { version: '1.27' }, 'parse_log_next_v2'],
      ['alibaba-fusion/next', { version: null }, 'parse_log_next_v1'],
      ['GoogleChrome/lighthouse', { version: '10.0' }, 'parse_log_lighthouse_mocha'],
      ['GoogleChrome/lighthouse', { version: '5.6' }, 'parse_log_carbon'],
      ['GoogleChrome/lighthouse', { version: '2.9' }, 'parse_log_lighthouse_json'],
    ] as const;
    for (const [repo, columns, expected] of rows) expect(parser({ repo, ...columns })).to.equal(expected);
  });

  it('is of fail_only where it does not say, as its repository is', () => {
    const failOnly = (row: object): boolean =>
      isFailOnly(swebenchHarnessConfig.parse({ test_command: 'x', instance: { ...ROW, ...row } }).instance);
    expect(failOnly({ repo: 'chartjs/Chart.js' })).to.equal(true);
    expect(failOnly({ repo: 'chartjs/Chart.js', eval_type: 'pass_and_fail' })).to.equal(false);
    expect(failOnly({ eval_type: 'fail_only' })).to.equal(true);
    expect(failOnly({})).to.equal(false);
  });
});
