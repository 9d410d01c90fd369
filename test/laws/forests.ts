// Random call forests, written to a file as exports are and damaged as such files come to be, built by `polar rebuild`
// and checked by laws.py, which knows nothing of how traces are built.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { polar } from '../support/cli.ts';
import { breaches, seeded } from '../support/laws.ts';
import type { RecordedCall } from '../support/records.ts';
import { madeUpSession } from '../support/sessions.ts';

export interface Checked {
  readonly sessions: number;
  readonly calls: number;
  readonly traces: number;
  /** Calls that were taken out of the logs, and lines that were written twice. */
  readonly holes: number;
  readonly repeated: number;
  /** As laws.py words them, with their session. */
  readonly breaches: string[];
  /** What `polar rebuild --json` said. */
  readonly report: Record<string, unknown>;
}

/** Trees with retries, siblings, rewinds, drift, sub-agents and broken calls; with calls missing and lines repeated. */
export async function checkForests(count: number, builder: string, firstSeed = 0): Promise<Checked> {
  const forests = new Map<string, RecordedCall[]>();
  const lines: string[] = [];
  let [holes, repeated] = [0, 0];
  const random = seeded(firstSeed);
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    const all = madeUpSession(seeded(seed), 1 + Math.floor(random() * 24), [2, 50, 3][seed % 3] ?? 2);
    const calls = seed % 4 === 0 ? all.filter(() => random() > 0.15) : all;
    holes += all.length - calls.length;
    const id = `forest-${seed}`;
    forests.set(id, calls);
    for (const call of calls) {
      const line = JSON.stringify({ session_id: id, ...call });
      lines.push(line);
      if (random() < 0.02) repeated += lines.push(line) > 0 ? 1 : 0;
    }
  }
  const { traces, report } = await rebuilt(shuffled(lines, random), builder);
  const bySession = Map.groupBy(traces, (line) => (JSON.parse(line) as { session_id: string }).session_id);
  const sessions = [...forests].map(([id, calls]) => ({
    calls: calls.map((call) => JSON.stringify(call)),
    traces: bySession.get(id) ?? [],
  }));
  const found = breaches(sessions).flatMap((bad, i) => bad.map((one) => `${[...forests.keys()][i]}: ${one}`));
  const calls = [...forests.values()].flat().length;
  return { sessions: forests.size, calls, traces: traces.length, holes, repeated, breaches: found, report };
}

async function rebuilt(
  lines: readonly string[],
  builder: string,
): Promise<{ readonly traces: string[]; readonly report: Record<string, unknown> }> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-forests-'));
  const [calls, traces] = [join(folder, 'calls.jsonl'), join(folder, 'traces.jsonl')];
  try {
    writeFileSync(calls, lines.map((line) => `${line}\n`).join(''));
    const { code, stdout, stderr } = await polar([
      'rebuild',
      ...['--builder', builder, '--calls', calls, '--traces', traces, '--json'],
    ]);
    if (code !== 0) throw new Error(`polar rebuild ended with ${code}: ${stderr}${stdout}`);
    return { traces: readFileSync(traces, 'utf8').trim().split('\n'), report: JSON.parse(stdout) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function shuffled(lines: readonly string[], random: () => number): string[] {
  return lines
    .map((line) => [random(), line] as const)
    .sort(([a], [b]) => a - b)
    .map(([, line]) => line);
}
