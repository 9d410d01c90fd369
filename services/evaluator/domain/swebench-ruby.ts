// Logs of Ruby repositories as SWE-bench reads them.
import { byLine, fromTheEnd, spacesEnd, WORD } from './swebench-scan.ts';

const OUTCOMES: Readonly<Record<string, string>> = {
  '.': 'PASSED',
  F: 'FAILED',
  E: 'FAILED',
  O: 'SKIPPED',
};

/** `Class. test = 0.01 s = .`: the last `.`, `F` or `E` behind an equals sign counts. */
export const readMinitestLog = byLine((line) => {
  const at = Math.max(...['.', 'F', 'E'].map((one) => line.lastIndexOf(one)));
  const sign = at < 1 ? -1 : line.lastIndexOf('=', at - 1);
  const end = sign < 2 ? -1 : line.lastIndexOf('. ', sign - 2);
  const status = OUTCOMES[line.charAt(at)];
  return end < 1 || status === undefined ? undefined : [line.slice(0, end), status];
});

const DOTS = /\.+/y;

/** `file ....F`: what stands behind the first failure does not count, nor a single dot. */
export const readCucumberLog = byLine((line) => {
  for (const at of fromTheEnd(line, ' .')) {
    DOTS.lastIndex = at + 1;
    const [dots = ''] = DOTS.exec(line) ?? [];
    if (line.charAt(at + 1 + dots.length) === 'F') return [line.slice(0, at), 'FAILED'];
    if (dots.length > 1) return [line.slice(0, at), 'PASSED'];
  }
  return undefined;
});

const IN_WORD = new RegExp(WORD, 'uy');
const TEST = 'test: ';

/** `test: a does b:  .: (0.01)` */
export const readRubyUnitLog = byLine((line) => {
  for (const at of fromTheEnd(line, ':')) {
    const place = spacesEnd(line, at + 1);
    const status = at < 1 || place === at + 1 ? undefined : outcomeAt(line, place);
    if (status === undefined) continue;
    const isLonger = line.startsWith(TEST) && at > TEST.length;
    return [line.slice(isLonger ? TEST.length : 0, at), status];
  }
  return undefined;
});

function outcomeAt(line: string, at: number): string | undefined {
  IN_WORD.lastIndex = at + 1;
  const isWord = line.charAt(at) !== '.' && IN_WORD.test(line);
  return isWord ? undefined : OUTCOMES[line.charAt(at)];
}

/** `name - passed`, as the row's script makes it of RSpec's JSON; tests that are pending are none. */
export const readRspecLog = byLine((line) => {
  const [passed, failed] = [line.lastIndexOf(' - passed'), line.lastIndexOf(' - failed')];
  const at = Math.max(passed, failed);
  return at < 1 ? undefined : [line.slice(0, at), passed > failed ? 'PASSED' : 'FAILED'];
});
