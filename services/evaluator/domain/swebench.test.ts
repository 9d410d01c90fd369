// Logs, and what SWE-bench's own package says of them: test/vectors/swebench.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { casesIn, expectGraded, vectorsIn } from '../../../test/support/swebench.ts';
import type { LogParser } from '../../common/specs/catalogue.ts';
import { exitCodeIn, logOf, scriptOf, statusesIn } from './swebench-log.ts';
import { LOG_READERS } from './swebench-parsers.ts';
import { reportOf } from './swebench-report.ts';

const FOLDER = vectorsIn('swebench');
const read = (file: string): string => readFileSync(join(FOLDER, file), 'utf8');
const CASES = casesIn('swebench');
/** What is read where it grades otherwise: to it, markers that tests print hide what they tell behind these. */
const BEHIND_MARKERS: Readonly<Record<string, object>> = {
  'the first end counts': { a: 'PASSED', c: 'FAILED' },
  'the second start ends it': { a: 'PASSED', c: 'PASSED' },
};

describe('logs of SWE-bench', () => {
  it('are recorded in the folder', () => {
    const files = CASES.flatMap(({ file }) => file ?? []);
    expect(readdirSync(FOLDER)).to.have.members([...new Set(files), 'results.json']);
  });

  for (const one of CASES) {
    const { what, file, text = '' } = one;
    if (BEHIND_MARKERS[what] !== undefined) continue;
    it(`are graded as it grades them: ${what}`, () =>
      expectGraded(one, file === undefined ? text : read(file)));
  }

  it("are read for SWE-Gym's pydantic: without notes and colours, in the old form too", () => {
    const log = [
      'FAILED [ 50%] t.py::a - x [y]',
      '\x1b[31mFAILED\x1b[0m t.py::b[z] - x',
      't.py::c PASSED',
      'PASSED',
      'PASSED t.py::d FAILED [x] y',
    ].join('\n');
    expect([...LOG_READERS.parse_log_pytest_pydantic(log)]).to.deep.equal([
      ['t.py::a', 'FAILED'],
      ['t.py::b[z]', 'FAILED'],
      ['t.py::c', 'PASSED'],
      ['t.py::d', 'PASSED'],
    ]);
  });

  it('say what a test passes with: no other word does', () => {
    const { statuses } = statusesIn(logOf('PASSEDX a\nERROR: b', 0), LOG_READERS.parse_log_pytest) as {
      statuses: ReadonlyMap<string, string>;
    };
    const row = { failToPass: ['a'], passToPass: ['b'], failOnly: false };
    expect(reportOf(row, statuses)).to.deep.include({ resolution: 'NO' });
  });

  it('are read from the first start to the last end: markers that tests print hide nothing', () => {
    for (const [what, statuses] of Object.entries(BEHIND_MARKERS)) {
      const { text = '', log_parser } = CASES.find((one) => one.what === what) ?? expect.fail(what);
      const told = statusesIn(text, LOG_READERS[log_parser]);
      expect('statuses' in told && Object.fromEntries(told.statuses), what).to.deep.equal(statuses);
    }
    const ends = statusesIn(
      '>>>>> End Test Output\n>>>>> Start Test Output\nPASSED a',
      LOG_READERS.parse_log_pytest,
    );
    expect(ends).to.have.keys('invalid');
  });

  it('are read in time that grows as they do', () => {
    const row = (names: string[]) => ({ failToPass: names, passToPass: names, failOnly: false });
    const many = (text: string): string => text.repeat(20_000);
    const odd = [
      many('x ... Testing against Django installed in '),
      many(' silenced).\nok'),
      many('a ... Internal Server Error: / '),
      many('\n... Internal Server Error: /'),
      many(' a.py:b'),
      many('FAILED ['),
      many('PASSED a[[1111 '),
      many('1'),
      many(' '),
      `${many('PASSED a[')}\n`,
    ];
    const parsers = new Set<LogParser>(['parse_log_pytest_pydantic', ...CASES.map((one) => one.log_parser)]);
    for (const text of odd) {
      const { user } = process.cpuUsage();
      for (const parser of parsers) statusesIn(logOf(text, 0), LOG_READERS[parser]);
      expect((process.cpuUsage().user - user) / 1000, text.slice(0, 40)).to.be.lessThan(3_000);
    }
    const names = Array.from({ length: 50_000 }, (_, index) => `PASSED a[${index} x`);
    const told = statusesIn(logOf(names.join('\n'), 0), LOG_READERS.parse_log_pytest);
    const cut = Array.from({ length: 5_000 }, (_, index) => `a[${index + 90_000}`);
    if ('statuses' in told) expect(reportOf(row(cut), told.statuses).resolution).to.equal('NO');
  });
});

describe("a row's script", () => {
  const RUN = ["echo '>>>>> Start Test Output'", '(exit 3)', "echo '>>>>> End Test Output'", 'true'].join(
    '\n',
  );

  it('tells the exit code of its tests, whatever it does behind them', () => {
    const script = scriptOf(`#!/bin/bash\nset -uxo pipefail\n${RUN}\n`);
    const { stdout, status } = spawnSync('bash', ['-s'], { input: script, encoding: 'utf8' });
    expect([exitCodeIn(stdout), status]).to.deep.equal([3, 0]);
    expect(script.match(/set -uxo pipefail/g)).to.have.length(1);
  });

  it('stays as it is where it tells that by itself', () => {
    const own = `${RUN}\necho ">>>>> Test Exit Code: 7"`;
    expect(scriptOf(own).match(/Test Exit Code/g)).to.have.length(1);
  });

  it('is believed in the end: what tests print before counts no more', () => {
    expect(exitCodeIn(logOf('>>>>> Test Exit Code: 0', 1))).to.equal(1);
    expect(exitCodeIn('>>>>> Test Exit Code: x')).to.equal(undefined);
  });
});
