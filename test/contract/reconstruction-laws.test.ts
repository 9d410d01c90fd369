// The laws on sessions nobody wrote down: laws.py knows nothing of how traces are built.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TraceSchema } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { type Build, build } from '../../services/reconstructor/domain/build.ts';
import type { Call } from '../../services/reconstructor/domain/call.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { callLine, traceLine } from '../../services/reconstructor/domain/export.ts';
import { idsOf } from '../../services/reconstructor/domain/token-tree.ts';
import { breaches, type ExportedSession, seeded } from '../support/laws.ts';
import { recordsOf } from '../support/records.ts';
import { madeUpSession } from '../support/sessions.ts';

const SESSIONS = 600;

const exported = (calls: readonly Call[], built: Build): ExportedSession => ({
  calls: calls.map(callLine),
  traces: built.traces.map(traceLine),
});

function made(seed: number): { readonly calls: Call[]; readonly built: Build } {
  const random = seeded(seed);
  const session = madeUpSession(random, 1 + Math.floor(random() * 24), seed % 2 === 0 ? 2 : 50);
  const calls = expand(recordsOf(session, random));
  return { calls, built: build('prefix_merging', calls) };
}

describe('reconstruction laws', () => {
  it(`hold for ${SESSIONS} made-up sessions`, () => {
    const sessions = Array.from({ length: SESSIONS }, (_, seed) => made(seed));
    const found = breaches(sessions.map(({ calls, built }) => exported(calls, built)));
    for (const [seed, breach] of found.entries()) expect(breach, `session ${seed}`).to.deep.equal([]);
    const traces = sessions.flatMap(({ built }) => built.traces);
    expect(traces.length, 'the sessions are worth checking').to.be.greaterThan(SESSIONS);
    expect(traces.filter((trace) => trace.spans.length > 2).length).to.be.greaterThan(SESSIONS / 4);
  });

  it('restore every prompt from its base, whatever the base is', () => {
    for (let seed = 0; seed < SESSIONS; seed++) {
      const random = seeded(seed);
      const session = madeUpSession(random, 20, 3).sort((a, b) => a.end_seq - b.end_seq);
      for (const [i, call] of expand(recordsOf(session, random)).entries()) {
        expect([...idsOf(call.prompt)]).to.deep.equal(session[i]?.prompt_ids);
        expect([...idsOf(call.end, call.prompt.depth)]).to.deep.equal(session[i]?.sampled_ids);
      }
    }
  });

  it('count every sampled id as trained or as masked', () => {
    for (let seed = 0; seed < SESSIONS; seed++) {
      const { stats, traces } = made(seed).built;
      const masked = Object.values(stats.maskedTokens).reduce((sum, count) => sum + count, 0n);
      expect(stats.sampledTokens).to.equal(stats.trainedTokens + masked);
      const ones = traces.reduce((sum, trace) => sum + trace.lossMask.reduce((n, bit) => n + bit, 0), 0);
      expect(stats.trainedTokens).to.equal(BigInt(ones));
    }
  });

  it('give the same whatever the order of the calls', () => {
    for (let seed = 0; seed < SESSIONS; seed++) {
      const { calls, built } = made(seed);
      const random = seeded(seed + 1);
      const again = build(
        'prefix_merging',
        calls.toSorted(() => random() - 0.5),
      );
      const bytes = (one: Build): string[] =>
        one.traces.map((trace) => Buffer.from(toBinary(TraceSchema, trace)).toString('hex'));
      expect(bytes(again)).to.deep.equal(bytes(built));
      expect(again.drift).to.deep.equal(built.drift);
      expect(again.stats).to.deep.equal(built.stats);
    }
  });

  it('are checked by the program itself, which also finds a breach', () => {
    const { calls, built } = made(7);
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-laws-'));
    const laws = (traces: readonly string[]): string => {
      const [callsFile, tracesFile] = [join(folder, 'calls.jsonl'), join(folder, 'traces.jsonl')];
      writeFileSync(callsFile, calls.map(callLine).join('\n'));
      writeFileSync(tracesFile, traces.join('\n'));
      const program = join(import.meta.dirname, '../vectors/laws.py');
      return execFileSync('python3', [program, callsFile, tracesFile], { encoding: 'utf8', stdio: 'pipe' });
    };
    try {
      const lines = built.traces.map(traceLine);
      expect(laws(lines)).to.contain('all laws hold');
      expect(() => laws(lines.slice(1))).to.throw();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
