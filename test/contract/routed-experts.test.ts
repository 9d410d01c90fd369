// Routed experts on made-up sessions, from what the engine told to the traces: every row that is known is the one that the
// model has for these ids, and where no call lacks its own, all are known but those of ids that no call read.
import { expect } from 'chai';
import { type ExpertModel, routedExperts } from '../../examples/scripted-engine/reply/experts.ts';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { unpackIds } from '../../services/common/columns.ts';
import { BUILDERS } from '../../services/common/specs/catalogue.ts';
import { AttemptState } from '../../services/llm-proxy/domain/attempt-state.ts';
import { build } from '../../services/reconstructor/domain/build.ts';
import type { Call } from '../../services/reconstructor/domain/call.ts';
import { CallLog } from '../../services/reconstructor/domain/call-log.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { callLine, traceLine } from '../../services/reconstructor/domain/export.ts';
import { seeded } from '../support/laws.ts';
import type { RecordedCall } from '../support/records.ts';
import { madeUpSession } from '../support/sessions.ts';

const SESSIONS = 60;
const MODEL: ExpertModel = { layers: 2, topK: 2, experts: 16 };
const WIDTH = MODEL.layers * MODEL.topK;

/** The records of these calls, of which a share lacks its experts. */
function recordsOf(calls: readonly RecordedCall[], chance: () => number, lost: number): Completion[] {
  const state = new AttemptState();
  return calls
    .toSorted((a, b) => a.end_seq - b.end_seq)
    .map((call, i) => {
      const ids = [...call.prompt_ids, ...call.sampled_ids];
      const told = chance() < lost ? undefined : routedExperts(ids, 0, MODEL);
      const record = state.encode({
        promptIds: Int32Array.from(call.prompt_ids),
        sampledIds: Int32Array.from(call.sampled_ids),
        experts: {
          shape: MODEL,
          from: 0,
          rows: told === undefined ? undefined : { values: unpackIds(Buffer.from(told, 'base64')) },
        },
        messages: call.messages.map((digest) => ({ digest, value: digest })),
        digests: call.messages,
        tools: undefined,
        reply: call.reply === null ? undefined : { digest: call.reply, value: call.reply },
        fields: {
          callId: call.call_id,
          startSeq: BigInt(call.start_seq),
          endSeq: BigInt(call.end_seq),
          finishReason: call.finish_reason,
          role: call.role ?? 'main',
          trainable: call.trainable ?? true,
          ...(call.logprobs !== null && {
            logprobs: new Uint8Array(Float32Array.from(call.logprobs, Number).buffer),
          }),
        },
      });
      state.apply(record, i + 1);
      return record;
    });
}

/** The calls of the records after an export, in another order. */
function exported(records: readonly Completion[], chance: () => number): Call[] {
  const log = new CallLog();
  const lines = expand(records).map((call) => callLine(call));
  for (const line of lines.sort(() => chance() - 0.5)) {
    expect(log.add(JSON.parse(line) as Record<string, unknown>)).to.equal(undefined);
    expect(log.add(JSON.parse(line) as Record<string, unknown>)?.kind).to.equal('repeated');
  }
  return log.calls;
}

/** How many rows of all traces are known and are not; throws where one is not the model's. */
function rowsIn(records: readonly Completion[]): { known: number; unknown: number; traces: number } {
  const counts = { known: 0, unknown: 0, traces: 0 };
  for (const builder of BUILDERS) {
    for (const { promptIds, responseIds, routedExperts: told } of build(builder, expand(records)).traces) {
      const ids = [...unpackIds(promptIds), ...unpackIds(responseIds)];
      const want = unpackIds(Buffer.from(routedExperts([...ids, 0], 0, MODEL), 'base64'));
      counts.traces++;
      for (const i of ids.keys()) {
        const isKnown = told?.known[i] === 1;
        counts[isKnown ? 'known' : 'unknown']++;
        const row = [...(told?.rows.subarray(i * WIDTH, (i + 1) * WIDTH) ?? [])];
        if (isKnown) expect(row).to.deep.equal([...want.subarray(i * WIDTH, (i + 1) * WIDTH)]);
        else expect(row.every((expert) => expert === 0)).to.equal(true);
      }
    }
  }
  return counts;
}

describe('routed experts of made-up sessions', () => {
  it('are known of every id that was read', () => {
    for (let seed = 1; seed <= SESSIONS; seed++) {
      const chance = seeded(seed);
      const { unknown, traces } = rowsIn(recordsOf(madeUpSession(chance, 20, 20), chance, 0));
      // The last id of each trace.
      expect(unknown).to.be.at.most(traces);
    }
  });

  it('come back from exported calls in any order as they were', () => {
    for (let seed = 1; seed <= SESSIONS; seed++) {
      const chance = seeded(seed);
      const records = recordsOf(madeUpSession(chance, 20, 20), chance, 0.3);
      const calls = exported(records, chance);
      for (const builder of BUILDERS) {
        const want = build(builder, expand(records));
        const got = build(builder, calls);
        expect(got.traces.map(traceLine)).to.deep.equal(want.traces.map(traceLine));
        expect(got.stats.expertsDropped).to.deep.equal(want.stats.expertsDropped);
      }
    }
  });

  it('are right where they are known, whichever calls lack theirs', () => {
    let [known, unknown] = [0, 0];
    for (let seed = 1; seed <= SESSIONS; seed++) {
      const chance = seeded(seed);
      const rows = rowsIn(recordsOf(madeUpSession(chance, 20, 20), chance, 0.3));
      [known, unknown] = [known + rows.known, unknown + rows.unknown];
    }
    expect(unknown).to.be.above(0);
    expect(known).to.be.above(unknown);
  });
});
