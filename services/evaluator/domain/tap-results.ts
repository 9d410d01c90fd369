// Results in the Test Anything Protocol, 12 to 14: `ok 1 - name`, sub-tests four columns further in.
import { linesOf, type TestRun } from './test-results.ts';

const POINT = /^(not )?ok(?:[ \t]+(\d+))?(?:[ \t]+(?:-[ \t]+)?(.*))?$/s;
const PLAN = /^1\.\.(\d+)(?:[ \t]|$)/;
const BAIL_OUT = /^Bail out!/;
const DIRECTIVE = /(?:^|[ \t])#[ \t]*(?:skip(?:ped)?|todo)\b/i;
/** How long it took, as Vitest and node-tap say it. */
const TIME = /[ \t]# time=[\d.]+m?s$/;
const INDENT = 4;

/** The points of one level up to its plan, or the plan and its points. */
class Level {
  readonly #runs: TestRun[] = [];
  /** Behind a plan: points that are to come. */
  #planned: number | undefined;
  #points = 0;
  hasPlan = false;
  last: Point | undefined;

  point(point: Point): void {
    if (this.#planned !== undefined && this.#points >= this.#planned) this.#endDocument();
    this.#points += 1;
    this.last = point;
    this.#runs.push([point.name, point.status]);
  }

  plan(points: number): void {
    if (this.#planned !== undefined) this.#endDocument();
    this.hasPlan = true;
    this.#planned = points;
    if (this.#points > 0) this.#endDocument();
  }

  add(runs: readonly TestRun[]): void {
    for (const run of runs) this.#runs.push(run);
  }

  /** With an ERROR for each plan that was not kept, and for points without one. */
  ended(): TestRun[] {
    this.#endDocument();
    return this.#runs;
  }

  /** Results inside of its last point. Without a plan they are none: what a test says of itself may look like points. */
  inLast(inner: Level | undefined): void {
    if (inner?.hasPlan)
      this.add(inner.ended().map(([name, status]) => [`${this.last?.name} > ${name}`, status]));
  }

  #endDocument(): void {
    const isKept = this.#planned === undefined ? this.#points === 0 : this.#points === this.#planned;
    if (!isKept) this.#runs.push([`1..${this.#planned ?? '?'}`, 'ERROR']);
    this.#planned = undefined;
    this.#points = 0;
  }
}

/** Several documents may follow each other, as `prove -v` prints them. */
export function readTap(output: string): TestRun[] {
  const lines = withoutDiagnostics(linesOf(output));
  /** By depth. */
  const levels = [new Level()];
  for (const [index, line] of lines.entries()) {
    const text = line.trimStart();
    const depth = (line.length - text.length) / INDENT;
    if (!Number.isInteger(depth) || depth > levels.length) continue;
    const level = levels[depth] ?? new Level();
    const opens = / \{$/.test(text) && isInside(lines[index + 1] ?? '', depth + 1);
    if (!isRead(level, text, opens, levels[depth + 1])) continue;
    levels.splice(depth, levels.length, level);
  }
  return levels[0]?.ended() ?? [];
}

/** Whether a line says something of sub-tests, at their depth. */
const isInside = (line: string, depth: number): boolean =>
  /^(?:(?:not )?ok|1\.\.|#)/.test(line.slice(depth * INDENT)) && line.slice(0, depth * INDENT).trim() === '';

/** Whether it says something of its level; `inner` is what stood before it, further in. */
function isRead(level: Level, text: string, opens: boolean, inner: Level | undefined): boolean {
  const [, plan] = PLAN.exec(text) ?? [];
  const point = pointOf(text, opens);
  if (plan !== undefined) level.plan(Number(plan));
  else if (BAIL_OUT.test(text)) level.add([['Bail out!', 'ERROR']]);
  else if (point !== undefined) {
    level.point(point);
    if (!point.opens) level.inLast(inner);
  } else if (text === '}' && level.last?.opens === true) level.inLast(inner);
  else return false;
  return true;
}

interface Point {
  readonly name: string;
  readonly status: string;
  /** Its sub-tests follow, up to a brace; those of others stand before them. */
  readonly opens: boolean;
}

/** A point with neither number nor name is none: so `prove` says that a file has passed. */
function pointOf(text: string, opens: boolean): Point | undefined {
  const [, not, number, all = ''] = POINT.exec(text) ?? [];
  if (number === undefined && all === '') return undefined;
  const said = opens ? all.slice(0, -2) : all;
  const directive = DIRECTIVE.exec(said);
  const name = unescaped(said.slice(0, directive?.index).trim().replace(TIME, '').trim());
  const result = not === undefined ? 'PASSED' : 'FAILED';
  return { name: name || `${number}`, status: directive === null ? result : 'SKIPPED', opens };
}

const unescaped = (name: string): string => name.replace(/\\([#\\])/g, '$1');

/** Without blocks of YAML: they hold what tests have said, and stand further in than what ends them. */
function withoutDiagnostics(lines: readonly string[]): string[] {
  let end: string | undefined;
  return lines.filter((line) => {
    if (end !== undefined) {
      if (line === end) end = undefined;
      return false;
    }
    const [, indent] = /^( +)---$/.exec(line) ?? [];
    if (indent !== undefined) end = `${indent}...`;
    return indent === undefined;
  });
}
