// Length of functions, read off the indentation: Biome formats all script code, and Python has no other way.
import { type Fault, isScript, type Rule } from './tree.ts';

/** Above it a function does not fit on a screen. */
const FUNCTION_LINES_MAX = 70;

export const functionLength: Rule = ({ files, read }) =>
  files.flatMap((file) => {
    const lines = read(file).split('\n');
    const spans = isScript(file)
      ? scriptFunctions(lines)
      : file.endsWith('.py')
        ? pythonFunctions(lines)
        : [];
    return spans
      .map(({ start, end }) => ({ line: start + 1, length: end - start + 1 }))
      .filter(({ length }) => length > FUNCTION_LINES_MAX)
      .map(({ line, length }): Fault => {
        return { file, line, message: `a function of ${length} lines, at most ${FUNCTION_LINES_MAX}` };
      });
  });

interface Span {
  readonly start: number;
  readonly end: number;
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

const KEYWORD = /^(if|else|for|while|do|switch|try|catch|finally|class|interface|namespace|describe)\b/;
const FUNCTION =
  /(\bfunction\b|=>\s*\{$|^(?:(?:static|async|get|set|private|override)\s+)*\*?\s*[#\w$[\].]+(?:<.*>)?\()/;

function scriptFunctions(lines: readonly string[]): Span[] {
  return lines.flatMap((line, index) => {
    if (!line.endsWith('{')) return [];
    const indent = indentOf(line);
    const start = line.trimStart().startsWith(')') ? lastAt(lines, index - 1, indent) : index;
    const head = (lines[start] ?? '').trim();
    const opens = start === index ? head : `${head} ${line.trim()}`;
    if (KEYWORD.test(head) || !FUNCTION.test(opens)) return [];
    const end = lines.findIndex((each, at) => at > index && indentOf(each) === indent && /^\s*\}/.test(each));
    return end === -1 ? [] : [{ start, end }];
  });
}

/** The line before `from` where a head of several lines begins. */
function lastAt(lines: readonly string[], from: number, indent: number): number {
  for (let at = from; at >= 0; at--) {
    const line = lines[at] ?? '';
    if (line !== '' && indentOf(line) <= indent) return at;
  }
  return 0;
}

function pythonFunctions(lines: readonly string[]): Span[] {
  return lines.flatMap((line, start) => {
    if (!/^\s*(async\s+)?def\s/.test(line)) return [];
    const indent = indentOf(line);
    let end = start;
    for (let at = start + 1; at < lines.length; at++) {
      const next = lines[at] ?? '';
      if (next.trim() === '') continue;
      if (indentOf(next) <= indent && !next.trimStart().startsWith(')')) break;
      end = at;
    }
    return [{ start, end }];
  });
}
