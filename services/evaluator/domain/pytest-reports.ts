// What pytest tells of its tests before its summary. It shows there what they have printed and logged, line by line; tests of
// pytest's own plug-ins print whole runs of it.

const STARTS = /^=+ test session starts =+$/;
const REPORTS = /^(?:=+ (?:ERRORS|FAILURES|PASSES|XFAILURES|XPASSES) =+|-+ live log \w+ -+)$/;
const SUMMARY = /^=+ short test summary info =+$/;
const ENDS = /^=+ (?:no tests|\d+ [a-z]+).* in [\d.]+ ?s(?:econds)?(?: \([\d:]+\))? =+$/;

/** A run of pytest that has not ended: how many lines were kept when it began to tell. */
interface Run {
  readonly from: number;
  /** It said that it began, and says that it ends; a quiet one ends with its summary. */
  readonly isLoud: boolean;
}

/** The lines without those that stand before a summary of pytest, from where that run of it began to tell. */
export function withoutReports(lines: readonly string[]): string[] {
  const kept: string[] = [];
  const runs: Run[] = [];
  for (const line of lines) {
    const run = runs.at(-1);
    if (STARTS.test(line)) runs.push({ from: kept.length, isLoud: true });
    else if (run === undefined && REPORTS.test(line)) runs.push({ from: kept.length, isLoud: false });
    else if (run !== undefined && SUMMARY.test(line)) kept.length = run.from;
    kept.push(line);
    const isOver = run?.isLoud ? ENDS.test(line) : SUMMARY.test(line);
    if (isOver) runs.pop();
  }
  return kept;
}
