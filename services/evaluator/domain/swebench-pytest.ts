// Logs of pytest as SWE-bench reads them: lines that begin with a result. It has a reader for each way in which its
// repositories print names, and expects names as that one gives them, so that these keep its oddities.
import {
  before,
  beginsWithStatus,
  endsWithStatus,
  type Named,
  type Statuses,
  statusesOf,
  stripStart,
  wordsOf,
} from './swebench-words.ts';

/** `SKIPPED [1] path:line: reason` names a place, and no test. */
const COUNT = /^\[\d+\]$/;
/** Digits of a colour, whose first character goes with the other control characters. */
const COLOUR = /\[\d+m/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
const CONTROL = /[\x01-\x1f]/g;

const isPlace = (status: string, name: string): boolean => status === 'SKIPPED' && COUNT.test(name);

/** The word behind the result. */
function plain(line: string): Named | undefined {
  if (!beginsWithStatus(line)) return undefined;
  const text = line.startsWith('FAILED') ? line.replaceAll(' - ', ' ') : line;
  const [status, name] = wordsOf(text);
  return status === undefined || name === undefined || isPlace(status, name) ? undefined : [name, status];
}

export const readPytestLog = (log: string): Statuses => statusesOf(log, plain);

/** Parameters that are a path are known by its last part: the folders are of the machine. */
export const readPytestOptionsLog = (log: string): Statuses =>
  statusesOf(log, (line) => {
    const [name, status] = plain(line) ?? [];
    return name === undefined || status === undefined ? undefined : [withoutFolders(name), status];
  });

function withoutFolders(name: string): string {
  const [open, close] = [name.indexOf('['), name.lastIndexOf(']')];
  if (open < 0 || close < open) return name;
  const option = name.slice(open + 1, close);
  const isPath = option.startsWith('/') && !option.startsWith('//') && !option.includes('*');
  return `${name.slice(0, open)}[${isPath ? option.slice(option.lastIndexOf('/')) : option}]`;
}

/** Names may hold spaces; old versions of pytest print the result behind the name. */
export const readPytestV2Log = (log: string): Statuses =>
  statusesOf(log, (coloured) => {
    const line = withoutColours(coloured);
    if (beginsWithStatus(line)) {
      const text = line.startsWith('FAILED') ? before(line, ' - ') : line;
      const [status, name, ...more] = wordsOf(text);
      if (status === undefined || name === undefined || isPlace(status, name)) return undefined;
      return [[name, ...more].join(' '), status];
    }
    const words = endsWithStatus(line) ? wordsOf(line) : [];
    return words.length < 2 ? undefined : [words.slice(0, -1).join(' '), words.at(-1) ?? ''];
  });

const withoutColours = (line: string): string => line.replaceAll(COLOUR, '').replaceAll(CONTROL, '');

/** SWE-Gym's, for pydantic: what stands in brackets behind FAILED is no name. */
export const readPydanticLog = (log: string): Statuses =>
  statusesOf(log, (coloured) => {
    const line = withoutNote(withoutColours(coloured));
    const [first, second] = beginsWithStatus(line) || endsWithStatus(line) ? wordsOf(dashless(line)) : [];
    if (first === undefined || second === undefined) return undefined;
    return beginsWithStatus(line) ? [second, first] : [first, second];
  });

const dashless = (line: string): string => (line.startsWith('FAILED') ? line.replaceAll(' - ', ' ') : line);

/** `FAILED [ 50%] name` without its brackets, wherever it stands. */
function withoutNote(line: string): string {
  const parts = line.split('FAILED');
  const [head = '', ...tails] = parts;
  const noted = tails.map((tail) => {
    const note = stripStart(tail).startsWith('[') ? tail.indexOf(']') : -1;
    return note < 0 ? tail : tail.slice(note + 1);
  });
  return [head, ...noted].join('FAILED');
}

/** With the names that buttons of a mouse had when its lists were made. */
export const readMatplotlibLog = (log: string): Statuses =>
  statusesOf(log, (line) =>
    plain(line.replaceAll('MouseButton.LEFT', '1').replaceAll('MouseButton.RIGHT', '3')),
  );

/** Results before the name or behind it. */
export const readSeabornLog = (log: string): Statuses =>
  statusesOf(log, (line) => {
    const [first, second] = wordsOf(line);
    if (first === undefined || second === undefined) return undefined;
    if (line.startsWith('FAILED')) return [second, 'FAILED'];
    if (line.includes(' PASSED ')) return second === 'PASSED' ? [first, 'PASSED'] : undefined;
    return line.startsWith('PASSED') ? [second, 'PASSED'] : undefined;
  });
