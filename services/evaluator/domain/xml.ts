// The elements of XML documents, and nothing else of them: no entities but the five of XML and characters, no DTDs.

export type XmlEvent =
  | { readonly kind: 'open'; readonly name: string; readonly attributes: ReadonlyMap<string, string> }
  | { readonly kind: 'close'; readonly name: string }
  /** The document is none, or ends too early. */
  | { readonly kind: 'broken'; readonly name: string };

// Each begins with `<` and is tried where one stands: none looks at a character twice.
const OPEN = /<([^\s<>/!?=]+)((?:\s+[^\s<>/=]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>/y;
const CLOSE = /<\/([^\s<>/]+)\s*>/y;
const ATTRIBUTE = /([^\s<>/=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
/** What is passed over, and where it ends. */
const PASSED_OVER = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
] as const;

/** Of all documents of `text` with one of these roots; what stands outside of them is left out. */
export function* xmlEvents(text: string, roots: readonly string[]): Generator<XmlEvent> {
  const root = new RegExp(`<(?:${roots.join('|')})(?=[\\s/>])`, 'g');
  for (let found = root.exec(text); found !== null; found = root.exec(text)) {
    root.lastIndex = yield* document(text, found.index);
  }
}

/** Returns where it ends, or cannot be read any further. */
function* document(text: string, start: number): Generator<XmlEvent, number> {
  const open: string[] = [];
  for (let at = start; at >= 0; at = text.indexOf('<', at)) {
    const over = PASSED_OVER.find(([begin]) => text.startsWith(begin, at));
    if (over !== undefined) {
      at = text.indexOf(over[1], at);
      if (at < 0) break;
      continue;
    }
    const tag = tagAt(text, at);
    const isInOrder = tag !== undefined && (tag.closes === undefined || tag.closes === open.at(-1));
    if (!isInOrder) {
      yield { kind: 'broken', name: open[0] ?? '' };
      return at + 1;
    }
    at = tag.end;
    if (tag.opens !== undefined) {
      open.push(tag.opens.name);
      yield tag.opens;
    }
    if (tag.opens === undefined || tag.isEmpty) {
      yield { kind: 'close', name: open.pop() ?? '' };
    }
    if (open.length === 0) return at;
  }
  yield { kind: 'broken', name: open[0] ?? '' };
  return text.length;
}

interface Tag {
  readonly opens?: Extract<XmlEvent, { kind: 'open' }>;
  readonly closes?: string;
  readonly isEmpty: boolean;
  readonly end: number;
}

function tagAt(text: string, at: number): Tag | undefined {
  OPEN.lastIndex = at;
  const [, name, inside = '', slash] = OPEN.exec(text) ?? [];
  if (name !== undefined) {
    const opens = { kind: 'open' as const, name, attributes: attributesOf(inside) };
    return { opens, isEmpty: slash === '/', end: OPEN.lastIndex };
  }
  CLOSE.lastIndex = at;
  const [, closes] = CLOSE.exec(text) ?? [];
  return closes === undefined ? undefined : { closes, isEmpty: false, end: CLOSE.lastIndex };
}

function attributesOf(text: string): Map<string, string> {
  const found = [...text.matchAll(ATTRIBUTE)];
  return new Map(found.map(([, name = '', double, single = '']) => [name, unescaped(double ?? single)]));
}

const NAMED = new Map([
  ['lt', '<'],
  ['gt', '>'],
  ['amp', '&'],
  ['quot', '"'],
  ['apos', "'"],
]);
const CHARACTER_MAX = 0x10ffff;

const unescaped = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(\w{2,4}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED.get(name) ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= CHARACTER_MAX ? String.fromCodePoint(code) : whole;
  });
