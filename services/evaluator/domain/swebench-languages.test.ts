// Logs of repositories that are not in Python, and what SWE-bench's own package says of them: test/vectors/swebench-languages.
import process from 'node:process';
import { expect } from 'chai';
import { isLong } from '../../../test/support/long.ts';
import { casesIn, expectGraded } from '../../../test/support/swebench.ts';
import { LOG_PARSERS, type LogParser } from '../../common/specs/catalogue.ts';
import { logOf, statusesIn } from './swebench-log.ts';
import { JOINED_NAMES_MAX } from './swebench-names.ts';
import { LOG_READERS } from './swebench-parsers.ts';

const CASES = casesIn('swebench-languages');
const PYTHON: readonly LogParser[] = [
  'parse_log_pytest_pydantic',
  ...casesIn('swebench').map((one) => one.log_parser),
];
const OTHERS = LOG_PARSERS.filter((one) => !PYTHON.includes(one));

describe('logs of SWE-bench in other languages', () => {
  it('are recorded for each of its parsers', () => {
    expect(new Set(CASES.map((one) => one.log_parser))).to.have.all.keys(OTHERS);
  });

  for (const one of CASES) {
    it(`are graded as it grades them: ${one.what}`, () => expectGraded(one, one.text ?? ''));
  }

  it('are read in time that grows as they do', () => {
    for (const parser of OTHERS) {
      for (const text of HOSTILE) {
        const { user } = process.cpuUsage();
        statusesIn(logOf(`${BEGINNINGS}${text}`, 0), LOG_READERS[parser]);
        const spentMs = (process.cpuUsage().user - user) / 1000;
        expect(spentMs, `${parser}: ${text.slice(0, 20)}`).to.be.lessThan(HOSTILE_CHARS / 64);
      }
    }
  });

  it('are none where their names would fill the memory', () => {
    const title = 'x'.repeat(JOINED_NAMES_MAX / 1000);
    const tests = (sign: string): string => `    ${sign} a\n`.repeat(1001);
    const logs = [
      ['parse_log_calypso', ` ./node_modules/.bin/jest \n  ${title}\n${tests('✓')}`],
      ['parse_log_karma', `Starting browser\n  ${title}\n${tests('✔')}`],
      ['parse_log_phpunit', `${title} (x)\n${tests('✔')}`],
    ] as const;
    for (const [parser, log] of logs) {
      const told = statusesIn(logOf(log, 0), LOG_READERS[parser]);
      expect(told, parser).to.deep.equal({ invalid: 'the names of its tests are too long together' });
    }
  });
});

/** In ms, a 64th of it: a reader that looks at all of it again for each character takes longer. */
const HOSTILE_CHARS = isLong ? 65_536 : 16_384;

/** What some readers wait for before they look at results. */
const BEGINNINGS = [
  ' ./node_modules/.bin/jest  xvfb-run ./node_modules/.bin/mocha --reporter json ',
  'running 1 test files',
  'Starting browser Chrome',
  'Running:)\n\n\n  x\n',
].join('\n');

const many = (text: string): string => text.repeat(Math.ceil(HOSTILE_CHARS / text.length));
const HOSTILE: readonly string[] = [
  ...[' ', '\n', '1', '\n ', ' 1)', '  1) a\n', '(', ' (', ' (1', '1.', '[', '[ ', ': ', ' . .', ' - passed'],
  ...[
    '--- PASS: a (',
    '-Dtest= ',
    'BUILD SUCCESS\n',
    'a. = ',
    '[       OK ] a (',
    '[ok]: a in ',
    'test a ... ok',
  ],
  ...[
    'PASS (1.1',
    'FAIL\n',
    '"fullTitle": "',
    '../..',
    '  "passes": [',
    'AssertionError: #',
    '\x1b[',
    '/tmp/a',
  ],
  ...['Chrome 1.2 (', 'Chrome Headless ', ' (Linux x86_64) ', '2KPhantomJS 1 (Linux 1', 'case : mismatch '],
  ...[
    '<a>',
    '<a><b>',
    '<a></a',
    '{\n',
    '  ✓ a (1ms',
    'running 1 test files\n',
    ' ✓ a\n',
    '  - a :',
    '\n  * a ',
  ],
  ...['<doctest><TestCase><SubCase>', '<doctest a="', 'Running: (1)\n\n\n  '].map((text) => `${text}\n`),
  ...['Error', '  1) x Error:\n', ' FAILED\n', 'Chrome 1 (a) FAILED\n'],
].map(many);
