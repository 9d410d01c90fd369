// Outputs of real test programs, and the results that must be read in them: test/vectors/test-output.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { TEST_FORMATS, type TestFormat } from '../../common/specs/catalogue.ts';
import { readResults } from './test-formats.ts';

interface Recorded {
  readonly format: TestFormat;
  readonly what: string;
  /** Names by their result. */
  readonly results: Readonly<Record<string, readonly string[]>>;
}

const FOLDER = join(import.meta.dirname, '../../../test/vectors/test-output');
const read = (file: string): string => readFileSync(join(FOLDER, file), 'utf8');
const RECORDED: Readonly<Record<string, Recorded>> = JSON.parse(read('results.json'));

describe('results of test programs', () => {
  it('are told for each recorded output', () => {
    expect(readdirSync(FOLDER)).to.have.members([...Object.keys(RECORDED), 'results.json']);
  });

  for (const [file, { format, what, results }] of Object.entries(RECORDED)) {
    it(`${format}: ${what}`, () => {
      // unittest writes on standard error; some files have both.
      const isError = format === 'unittest' && !file.includes('merged');
      const other = isError ? 'test_z (a.B) ... ok' : 'ok 1 - z';
      const printed = isError ? { stdout: other, stderr: read(file) } : { stdout: read(file), stderr: other };
      const found = readResults(format, printed, {});
      const byStatus = Object.groupBy(found.keys(), (name) => found.get(name) ?? '');
      expect(Object.keys(byStatus)).to.have.members(Object.keys(results));
      for (const [status, names] of Object.entries(results)) {
        expect(byStatus[status], status).to.have.members([...names]);
      }
    });
  }

  it('are read of very many tests', () => {
    const many = Array.from({ length: 200_000 }, (_, index) => `t${index}`);
    const texts: Partial<Record<TestFormat, string>> = {
      go: many.map((name) => `=== RUN   ${name}`).join('\n'),
      cargo: `running 200000 tests\n${many.map((name) => `test ${name} ... ok`).join('\n')}`,
      tap: `1..1\n${many.map((name) => `    ok - ${name}`).join('\n')}\n    1..200000\nok 1 - all`,
      jest: `{"numTotalTestSuites":1,"testResults":${JSON.stringify(many.map((name) => ({ name })))}}`,
      unittest: many.map((name) => `${name} (m) ... `).join('\n'),
    };
    for (const [format, stdout] of Object.entries(texts)) {
      const { size } = readResults(format as TestFormat, { stdout, stderr: '' }, {});
      expect(size, format).to.be.within(200_000, 200_001);
    }
  });

  for (const format of TEST_FORMATS.filter((one) => one !== 'pytest')) {
    it(`${format}: are recorded, and of nothing there are none`, () => {
      expect(Object.values(RECORDED).map((one) => one.format)).to.include(format);
      for (const text of ['', '\n\n', 'PASSED a\n', '{}', '<a/>', '{"a": 1}\n[1]\nnull']) {
        expect(readResults(format, { stdout: text, stderr: text }, {}).size, text).to.equal(0);
      }
    });

    it(`${format}: are read in one pass, whatever a line holds`, () => {
      const lines = [
        'a (b) ... ',
        'a (b) [',
        '] (',
        ' ... skipped ',
        ' # ',
        '\t',
        ' ',
        '(',
        '    ok',
        'test x ... ',
      ];
      const xml = [
        '<testsuite ',
        '<testsuite a="',
        '<testsuite><!--',
        '<![CDATA[',
        '</a>',
        "<testsuite a='>",
      ];
      const json = ['{"numTotalTestSuites":', '{"Action":"run","Package":"', '--- PASS: '];
      for (const part of [...lines, ...xml, ...json]) {
        const stdout = `ok 1${part.repeat(100_000)}x\n${part.repeat(100_000)}\n${`${part}\n`.repeat(20_000)}`;
        expect(readResults(format, { stdout, stderr: '' }, {})).to.be.a('map');
      }
    });
  }
});
