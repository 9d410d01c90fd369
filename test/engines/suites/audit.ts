// `polar audit` on what a real engine sampled: conserved to the token, and scored again by the command's own code.
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { SessionAudit } from '../../../clients/cli/audit/check.ts';
import type { RecordedCall } from '../../../clients/cli/audit/record.ts';
import { originOf, Rescoring } from '../../../clients/cli/audit/rescore.ts';
import { scoringAt } from '../../../clients/cli/audit/scoring.ts';
import {
  type Trace,
  type Trajectory,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { packIds, unpackIds } from '../../../services/common/columns.ts';
import { build } from '../../../services/reconstructor/domain/build.ts';
import { expand } from '../../../services/reconstructor/domain/expand.ts';
import { recordLine } from '../../../services/reconstructor/domain/export-records.ts';
import { Conversation } from '../conversation.ts';
import { figuresOf } from '../figures.ts';
import type { RealEngine } from '../kinds/engine.ts';
import type { Site } from '../site.ts';

const TURNS = ['Say seven.', 'And in words?', 'Why?', 'Once more, please.'];
const AUDIT_MS = 300_000;

interface Stored {
  readonly calls: readonly RecordedCall[];
  readonly trajectory: Trajectory;
}

export function audit(engine: RealEngine, site: () => Site): void {
  it('passes an audit, and a changed id is found', async () => {
    const stored = await session(site());
    const clean = audited(stored);
    const account = clean.finish();
    expect(account.findings).to.deep.equal([]);
    expect(account.sampled).to.equal(account.engine_usage);
    const rescoring = new Rescoring(scoringAt({ url: site().url, kind: engine.kind }));
    const origins = new Map(stored.calls.map((call) => [call.call_id, originOf(call)]));
    await rescoring.add('s', clean.traces, origins);
    expect(rescoring.notComparable).to.equal(0);
    const [row, ...others] = rescoring.rows();
    expect(others).to.deep.equal([]);
    expect(row?.ids).to.equal(account.trained);
    expect(row?.max).to.be.at.most(engine.tolerance);
    const { audits } = figuresOf(engine.title);
    audits[site().mode] = {
      ...account,
      ids: row?.ids ?? 0,
      mean: row?.mean ?? 0,
      p99: row?.p99 ?? 0,
      max: row?.max ?? 0,
    };
    expectFound(stored);
  }).timeout(AUDIT_MS);
}

async function session({ proxy }: Site): Promise<Stored> {
  const conversation = await Conversation.start(proxy);
  for (const turn of TURNS)
    await conversation.say(turn, turn.length % 2 === 0, { temperature: 1, maxTokens: 24 });
  const records = (await conversation.recorded()).map(({ record }) => record);
  const calls = expand(records);
  const { traces, stats } = build('prefix_merging', calls);
  const lines = calls.map((call, i) => recordLine(call, records[i] as (typeof records)[number]));
  return {
    calls: lines.map((line) => JSON.parse(line) as RecordedCall),
    trajectory: create(TrajectorySchema, { traces, stats }),
  };
}

function audited({ calls, trajectory }: Stored): SessionAudit {
  const checked = new SessionAudit(trajectory);
  for (const call of calls) checked.add(call);
  return checked;
}

/** One id of the store is another: found, with the call that sampled it. */
function expectFound(stored: Stored): void {
  const [trace] = stored.trajectory.traces as [Trace];
  const [span] = trace.spans;
  const ids = unpackIds(trace.responseIds);
  trace.responseIds = packIds(ids.with(1, (ids[1] as number) ^ 1));
  const [found] = audited(stored).finish().findings;
  expect(found).to.include({ kind: 'sampled_ids', call_id: span?.callId, trace: 0, index: 1 });
}
