// The checker of the laws (test/vectors/laws.py) run on many sessions, and numbers that only look random.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { build } from '../../services/reconstructor/domain/build.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { callLine, traceLine } from '../../services/reconstructor/domain/export.ts';

const folder = join(import.meta.dirname, '../vectors');

const CHECK_ALL = `
import json, sys
sys.path.insert(0, sys.argv[1])
from laws import check
for line in sys.stdin:
    session = json.loads(line)
    calls, traces = ([json.loads(one) for one in session[part]] for part in ("calls", "traces"))
    print(json.dumps(check(calls, traces)))
`;

export interface ExportedSession {
  /** JSON lines. */
  readonly calls: readonly string[];
  /** JSON lines. */
  readonly traces: readonly string[];
}

/** The session of these records as `polar export` writes it, built with prefix_merging. */
export function exportedOf(records: readonly Completion[]): ExportedSession {
  const calls = expand(records);
  const { traces } = build('prefix_merging', calls);
  return { calls: calls.map(callLine), traces: traces.map(traceLine) };
}

/** What laws.py finds wrong, session by session. */
export function breaches(sessions: readonly ExportedSession[]): string[][] {
  const output = execFileSync('python3', ['-B', '-c', CHECK_ALL, folder], {
    input: sessions.map((session) => `${JSON.stringify(session)}\n`).join(''),
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as string[]);
}

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
