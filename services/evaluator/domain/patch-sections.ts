// A patch cut into its files. Only what belongs to one is taken: what stands between could tell `patch` of other files.

/** What a patch says of one file. */
export interface Section {
  readonly text: string;
  /** Before its content, the line that begins it first. */
  readonly headers: readonly string[];
}

const GIT = 'diff --git ';
const EXTENDED =
  /^(?:(?:old|new|deleted file|new file) mode|(?:copy|rename) (?:from|to)|(?:dis)?similarity index|index) /;
const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const BINARY = 'GIT binary patch';
/** Lines behind it. */
const ENCODED = /^(?:(?:literal|delta) \d+|[A-Za-z][!-~]+)?\r?\n?$/;

/** Of git's form, or a unified diff: `---`, `+++` and hunks. */
export function sectionsOf(patch: string): Section[] {
  // Not at /^/m, for which a line ends at a carriage return too.
  const lines = patch.split(/(?<=\n)/);
  const sections: Section[] = [];
  for (let at = 0; at < lines.length; ) {
    const content = contentAt(lines, at);
    const end = content === undefined ? at : endOf(lines, content);
    if (content !== undefined && end > at) {
      const headers = lines.slice(at, content).map((line) => line.replace(/\r?\n$/, ''));
      sections.push({ text: lines.slice(at, end).join(''), headers });
    }
    at = Math.max(end, at + 1);
  }
  return sections;
}

/** Where the headers that begin at `at` end; undefined: none do. */
function contentAt(lines: readonly string[], at: number): number | undefined {
  const isGit = lines[at]?.startsWith(GIT) === true;
  let content = isGit ? at + 1 : at;
  while (isGit && EXTENDED.test(lines[content] ?? '')) content++;
  const names =
    lines[content]?.startsWith('--- ') === true && lines[content + 1]?.startsWith('+++ ') === true;
  const hunks = names && HUNK.test(lines[content + 2] ?? '');
  if (hunks) return content + 2;
  return isGit ? content : undefined;
}

/** Where the hunks or the encoded bytes that begin at `content` end. */
function endOf(lines: readonly string[], content: number): number {
  const first = lines[content] ?? '';
  let end = content;
  if (first.startsWith('Binary files ')) return content + 1;
  if (first.startsWith(BINARY)) {
    for (end++; end < lines.length && ENCODED.test(lines[end] ?? ''); ) end++;
    return end;
  }
  for (let hunk = HUNK.exec(first); hunk !== null; hunk = HUNK.exec(lines[end] ?? '')) {
    end = hunkEnd(lines, end + 1, Number(hunk[1] ?? 1), Number(hunk[2] ?? 1));
  }
  return end;
}

/** A hunk has as many old and new lines as its head says, whatever is in them. */
function hunkEnd(lines: readonly string[], begin: number, oldLines: number, newLines: number): number {
  let [at, old, fresh] = [begin, oldLines, newLines];
  for (; at < lines.length && (old > 0 || fresh > 0 || lines[at]?.startsWith('\\')); at++) {
    const kind = lines[at]?.[0];
    if (kind === '\\') continue;
    if (kind !== '+') old--;
    if (kind !== '-') fresh--;
  }
  return at;
}
