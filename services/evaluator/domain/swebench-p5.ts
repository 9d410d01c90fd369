// Logs of processing/p5.js as SWE-bench reads them: mocha's numbered failures, without objects and elements that tests have printed.
import { allAre, DIGIT, WORD, withoutAnsi } from './swebench-scan.ts';
import { forward, type Statuses, stripEnd, stripped, stripStart } from './swebench-words.ts';

export const readP5Log = (log: string): Statuses =>
  allAre('FAILED', failuresIn(withoutElements(withoutObjects(withoutAnsi(log)))));

/** From a line that ends with an opening bracket up to one that is a closing one. */
function withoutObjects(log: string): string {
  const inside = { object: false, list: false };
  const isKept = (line: string): boolean => {
    const text = stripEnd(line);
    if (text.endsWith('{')) inside.object = true;
    else if (text.endsWith('[')) inside.list = true;
    else if (text === '}' && inside.object) inside.object = false;
    else if (text === ']' && inside.list) inside.list = false;
    else return !(inside.object || inside.list || isWhole(text, '{', '}') || isWhole(text, '[', ']'));
    return false;
  };
  return log.split('\n').filter(isKept).join('\n');
}

const isWhole = (text: string, open: string, close: string): boolean =>
  text.startsWith(open) && text.endsWith(close);

const TAG = new RegExp(`<(/?)(${WORD}+)>`, 'gu');

interface Tag {
  readonly name: string;
  readonly isOpen: boolean;
  readonly at: number;
  readonly end: number;
  /** Among those of its name. */
  readonly place: number;
}

/** Elements with all that they hold. What has no end stays, and so do tags that come about where an element was. */
function withoutElements(log: string): string {
  const byName = new Map<string, Tag[]>();
  const all: Tag[] = [];
  for (const { index, 0: whole, 1: slash, 2: name = '' } of log.matchAll(TAG)) {
    const alike = byName.get(name) ?? [];
    byName.set(name, alike);
    const tag = { name, isOpen: slash === '', at: index, end: index + whole.length, place: alike.length };
    alike.push(tag);
    all.push(tag);
  }
  const lastEnd = new Map(
    [...byName].map(([name, tags]) => [name, tags.findLastIndex(({ isOpen }) => !isOpen)]),
  );
  const kept: string[] = [];
  let from = 0;
  for (const tag of all) {
    const last = lastEnd.get(tag.name) ?? -1;
    if (!tag.isOpen || tag.at < from || last < tag.place) continue;
    const { end, open } = elementOf(byName.get(tag.name) ?? [], tag.place, last);
    kept.push(log.slice(from, tag.at), `<${tag.name}>`.repeat(open));
    from = end;
  }
  return [...kept, log.slice(from)].join('');
}

/** Where the element ends that begins at `place`, or the last one in it that does, and how many are open then. */
function elementOf(tags: readonly Tag[], place: number, last: number): { end: number; open: number } {
  let open = 0;
  let end = 0;
  for (let at = place; at <= last; at++) {
    const tag = tags[at];
    if (tag === undefined) break;
    open += tag.isOpen ? 1 : -1;
    end = tag.end;
    if (open === 0) break;
  }
  return { end, open };
}

const NUMBERED = new RegExp(`^${DIGIT}+\\)`, 'u');
/** In characters. */
const NAME_MAX = 1000;

function failuresIn(log: string): string[] {
  const nextColon = forward((from) => log.indexOf(':', from));
  const [charactersToStart, charactersToEnd] = [charactersUpTo(log), charactersUpTo(log)];
  const names: string[] = [];
  let [line, taken] = [0, 0];
  for (const text of log.split('\n')) {
    const number = stripStart(text);
    const [head] = line < taken ? [] : (NUMBERED.exec(number) ?? []);
    if (head !== undefined) {
      const start = line + text.length - number.length + head.length;
      const end = nextColon(start);
      if (end >= 0 && charactersToEnd(end) - charactersToStart(start) <= NAME_MAX) {
        taken = end + 1;
        const parts = log.slice(start, end).split('\n');
        if (isDeeperEach(parts)) names.push(parts.map(stripped).join(':'));
      }
    }
    line += text.length + 1;
  }
  return names;
}

/** As Python counts them, for places that grow. */
function charactersUpTo(log: string): (to: number) => number {
  let [at, characters] = [0, 0];
  return (to) => {
    for (; at < to; at++) if (!isSecondHalf(log.charCodeAt(at))) characters++;
    return characters;
  };
}

/** Of a character that takes two places. */
const isSecondHalf = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** Each line is indented more than the one before it. */
function isDeeperEach(lines: readonly string[]): boolean {
  const indents = lines.map((line) => line.length - stripStart(line).length);
  return indents.every((indent, index) => indent > (indents[index - 1] ?? 0));
}
