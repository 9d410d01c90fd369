// What pytest tells of its tests before its summary. It shows there what they have printed and logged, line by line.

const STARTS = /^=+ test session starts =+$/;
const REPORTS = /^(?:=+ (?:ERRORS|FAILURES|PASSES|XFAILURES|XPASSES) =+|-+ live log \w+ -+)$/;
const SUMMARY = /^=+ short test summary info =+$/;

/** The lines without those that stand before a summary of pytest, from where that run of it began to tell. */
export function withoutReports(lines: readonly string[]): string[] {
  const kept: string[] = [];
  let from: number | undefined;
  for (const line of lines) {
    if (STARTS.test(line)) from = kept.length;
    else if (REPORTS.test(line)) from ??= kept.length;
    else if (SUMMARY.test(line) && from !== undefined) {
      kept.length = from;
      from = undefined;
    }
    kept.push(line);
  }
  return kept;
}
