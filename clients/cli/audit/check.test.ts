import { create, type JsonObject } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Completion, PolicySpanSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import {
  type Trace,
  type Trajectory,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { unpackFloats, unpackIds } from '../../../services/common/columns.ts';
import { type BuilderPolicies, DEFAULT_POLICIES } from '../../../services/common/specs/strategies.ts';
import { build } from '../../../services/reconstructor/domain/build.ts';
import { expand } from '../../../services/reconstructor/domain/expand.ts';
import { recordLine } from '../../../services/reconstructor/domain/export-records.ts';
import { seeded } from '../../../test/support/laws.ts';
import { type RecordedCall as Made, recordsOf } from '../../../test/support/records.ts';
import { madeUpSession } from '../../../test/support/sessions.ts';
import { type Account, type Finding, SessionAudit } from './check.ts';
import type { RecordedCall } from './record.ts';

interface Stored {
  readonly calls: RecordedCall[];
  readonly trajectory: Trajectory;
}

type Config = Partial<BuilderPolicies> & JsonObject;

function stored(
  made: readonly Made[],
  builder: 'prefix_merging' | 'per_request' = 'prefix_merging',
  builderConfig: Config = {},
  change: (records: Completion[]) => void = () => {},
): Stored {
  const records = recordsOf(made);
  change(records);
  const calls = expand(records);
  const lines = calls.map((call, i) => recordLine(call, records[i] as (typeof records)[number]));
  const built = build(builder, calls, { ...DEFAULT_POLICIES, ...builderConfig });
  return {
    calls: lines.map((line) => JSON.parse(line) as RecordedCall),
    trajectory: create(TrajectorySchema, { sessionId: 's', builder, builderConfig, ...built }),
  };
}

function audited({ calls, trajectory }: Stored): Account {
  const audit = new SessionAudit(trajectory);
  for (const call of calls) audit.add(call);
  return audit.finish();
}

/** Three turns in one trace. */
function threeTurns(): Stored {
  const prompts = [
    [1, 2],
    [1, 2, 3, 4, 5],
    [1, 2, 3, 4, 5, 6, 7, 8],
  ];
  const sampled = [[3, 4], [6, 7], [9]];
  const made = prompts.map((prompt_ids, i) => ({
    call_id: `c${i}`,
    start_seq: 2 * i,
    end_seq: 2 * i + 1,
    prompt_ids,
    sampled_ids: sampled[i] as number[],
    logprobs: (sampled[i] as number[]).map((id) => -id / 8),
    finish_reason: 'stop',
    model: 'm',
    policy_version: 3,
    messages: prompts.slice(0, i + 1).map(String),
    reply: `r${i}`,
  }));
  return stored(made);
}

const traceOf = ({ trajectory }: Stored): Trace => trajectory.traces[0] as Trace;

describe('audit of a session', () => {
  it('finds nothing in made-up sessions, and counts what was sampled', () => {
    for (let seed = 1; seed <= 60; seed++) {
      for (const builder of ['prefix_merging', 'per_request'] as const) {
        const made = madeUpSession(seeded(seed), 12, 12);
        const { calls, trajectory } = stored(made, builder);
        const account = audited({ calls: calls.toReversed(), trajectory });
        expect(account.findings, `seed ${seed}`).to.deep.equal([]);
        const masked = Object.values(account.masked).reduce((sum, count) => sum + count, 0);
        expect(account.sampled).to.equal(made.reduce((sum, one) => sum + one.sampled_ids.length, 0));
        expect(account.trained + masked).to.equal(account.sampled);
        expect(account.engine_usage).to.equal(account.sampled);
      }
    }
  });

  const POLICIES: readonly Config[] = [
    { side_calls: 'train', frozen_models: 'train', interrupted: 'train' },
    { missing_logprobs: 'mask_call', truncated: 'mask', retries: 'mask', abandoned: 'mask' },
    { max_trace_tokens: 12 },
    { reasoning_end_ids: [5] },
  ];
  for (const config of POLICIES) {
    it(`finds nothing where the builder was told ${JSON.stringify(config)}`, () => {
      for (let seed = 1; seed <= 40; seed++) {
        const session = stored(madeUpSession(seeded(seed), 12, 12), 'prefix_merging', config);
        expect(audited(session).findings, `seed ${seed}`).to.deep.equal([]);
      }
    });
  }

  const FAULTS: readonly (readonly [string, (session: Stored) => void, Partial<Finding>])[] = [
    [
      'a sampled id that was changed',
      (session) => unpackIds(traceOf(session).responseIds).set([99], 4),
      {
        kind: 'sampled_ids',
        call_id: 'c1',
        trace: 0,
        index: 1,
        message: 'the store has id 99, the record 7',
      },
    ],
    [
      'an id of the context that was changed',
      (session) => unpackIds(traceOf(session).promptIds).set([99], 1),
      { kind: 'context', call_id: 'c0', trace: 0, index: 1, message: 'the store has id 99, the record 2' },
    ],
    [
      'an id between two replies that was changed',
      (session) => unpackIds(traceOf(session).responseIds).set([99], 2),
      { kind: 'context', call_id: 'c1', trace: 0, index: 4 },
    ],
    [
      'a logprob that was changed',
      (session) => unpackFloats(traceOf(session).logprobs).set([-0.25], 0),
      { kind: 'logprob', call_id: 'c0', trace: 0, index: 0 },
    ],
    [
      'context that is trained',
      (session) => traceOf(session).lossMask.set([1], 2),
      { kind: 'mask', trace: 0, index: 2 },
    ],
    [
      'an id that is masked without a reason',
      (session) => {
        traceOf(session).lossMask.set([0], 3);
        unpackFloats(traceOf(session).logprobs).set([0], 3);
      },
      { kind: 'mask', call_id: 'c1', trace: 0, index: 0 },
    ],
    [
      'a reply that must not be trained',
      ({ calls }) => calls.splice(2, 1, { ...(calls[2] as RecordedCall), finish_reason: 'cancelled' }),
      { kind: 'mask', call_id: 'c2', trace: 0, index: 0, message: 'is trained, but must not be: cancelled' },
    ],
    [
      'a span that was moved',
      (session) => {
        (traceOf(session).spans[1] as { start: number }).start--;
      },
      { kind: 'context', call_id: 'c1', trace: 0 },
    ],
    [
      'another policy version',
      (session) => {
        (traceOf(session).spans[0] as { policyVersion: bigint }).policyVersion = 4n;
      },
      { kind: 'span', call_id: 'c0', message: 'the store says policy version 4, the record 3' },
    ],
    ['a record that is gone', ({ calls }) => calls.splice(1, 1), { kind: 'unknown_call', call_id: 'c1' }],
    [
      'a call in two traces',
      ({ trajectory }) => trajectory.traces.push(trajectory.traces[0] as Trace),
      { kind: 'twice', call_id: 'c0', trace: 1 },
    ],
    [
      'a trace that is gone',
      ({ trajectory }) => trajectory.traces.splice(0, 1),
      { kind: 'not_in_traces', call_id: 'c0' },
    ],
    [
      'columns of different lengths',
      (session) => {
        traceOf(session).lossMask = traceOf(session).lossMask.subarray(1);
      },
      { kind: 'columns', trace: 0, message: 'has 7 ids, 6 mask values and 7 logprobs' },
    ],
    [
      'ids that the engine did not count',
      ({ calls }) =>
        calls.splice(0, 1, {
          ...(calls[0] as RecordedCall),
          usage: { prompt_tokens: 2, completion_tokens: 3 },
        }),
      { kind: 'usage', call_id: 'c0', message: '2 ids are recorded, the engine counted 3' },
    ],
    [
      'counts that do not add up',
      ({ trajectory }) => {
        (trajectory.stats as { trainedTokens: bigint }).trainedTokens = 4n;
      },
      { kind: 'stats', message: 'the trajectory tells of 4 trained ids, there are 5' },
    ],
  ];
  for (const [what, plant, wanted] of FAULTS) {
    it(`names ${what}`, () => {
      const session = threeTurns();
      expect(audited(session).findings).to.deep.equal([]);
      plant(session);
      const { findings } = audited(session);
      const found = findings.find(({ kind, call_id }) => kind === wanted.kind && call_id === wanted.call_id);
      expect(found, JSON.stringify(findings)).to.include(wanted);
    });
  }

  /** The weights changed in the middle of the second turn, whose last id has no logprob. */
  function changedWeights(): Stored {
    const common = { finish_reason: 'stop', model: 'm', policy_version: 3, messages: ['s'], reply: 'r' };
    const first = {
      call_id: 'c0',
      start_seq: 0,
      end_seq: 1,
      prompt_ids: [1],
      sampled_ids: [2],
      logprobs: [-1],
    };
    const second = { ...first, call_id: 'c1', start_seq: 2, end_seq: 3, prompt_ids: [1, 2, 3] };
    const ids = { sampled_ids: [4, 5, 6], logprobs: [-1, -2, null] };
    const third = { ...first, call_id: 'c2', start_seq: 4, end_seq: 5, prompt_ids: [1, 2, 3, 4, 5, 6] };
    const spans = [
      { start: 0, end: 1, policyVersion: 3n },
      { start: 1, end: 3, policyVersion: 5n },
    ].map((span) => create(PolicySpanSchema, span));
    const made = [first, { ...second, ...ids }, third].map((call) => ({ ...common, ...call }));
    return stored(made, 'prefix_merging', {}, (records) => records[1]?.policySpans.push(...spans));
  }

  const SPANS: readonly (readonly [string, (session: Stored) => void, Partial<Finding>])[] = [
    [
      'weights that changed elsewhere in a call',
      (session) => {
        (traceOf(session).spans[1]?.policyRuns[1] as { policyVersion: bigint }).policyVersion = 4n;
      },
      { kind: 'span', call_id: 'c1', index: 1, message: 'the store says policy version 4, the record 5' },
    ],
    [
      'weights that changed in a call and are not told',
      (session) => traceOf(session).spans[1]?.policyRuns.splice(0),
      { kind: 'span', call_id: 'c1', index: 1, message: 'the store says policy version 3, the record 5' },
    ],
    [
      'a smallest policy version that none has',
      ({ trajectory }) => {
        trajectory.policyVersionMin = 4n;
      },
      { kind: 'stats', message: 'the trajectory tells 4 as its smallest policy version, it is 3' },
    ],
    [
      'a largest policy version that none has',
      ({ trajectory }) => {
        trajectory.policyVersionMax = 3n;
      },
      { kind: 'stats', message: 'the trajectory tells 3 as its largest policy version, it is 5' },
    ],
    [
      'ids that are counted under another reason',
      ({ trajectory }) => {
        (trajectory.stats as { maskedTokens: Record<string, bigint> }).maskedTokens = { side: 1n };
      },
      { kind: 'stats', message: 'the trajectory tells of 0 ids masked as no_logprob, there are 1' },
    ],
    [
      'an id that is masked for another reason',
      (session) => {
        (traceOf(session).spans[1] as { maskedReason: string }).maskedReason = 'side';
      },
      { kind: 'mask', call_id: 'c1', index: 2, message: 'is masked without no_logprob' },
    ],
    [
      'a call that is cut in the middle of a trace',
      (session) => {
        (traceOf(session).spans[1] as { length: number }).length = 2;
      },
      { kind: 'span', call_id: 'c1', message: 'the store says 2 ids, stop; the record 3 ids, stop' },
    ],
    [
      'ids behind the last call',
      (session) => {
        const trace = traceOf(session);
        trace.responseIds = Buffer.concat([trace.responseIds, Buffer.alloc(4)]);
        trace.logprobs = Buffer.concat([trace.logprobs, Buffer.alloc(4)]);
        trace.lossMask = Buffer.concat([trace.lossMask, Buffer.alloc(1)]);
      },
      { kind: 'context', trace: 0, message: '1 ids stand behind its last call: no call was served them' },
    ],
    [
      'ids of context that are not there',
      ({ trajectory }) => {
        (trajectory.stats as { contextTokens: bigint }).contextTokens = 7n;
      },
      { kind: 'stats', message: 'the trajectory tells of 7 ids of context, there are 2' },
    ],
  ];
  for (const [what, plant, wanted] of SPANS) {
    it(`names ${what}`, () => {
      const session = changedWeights();
      expect(audited(session).findings).to.deep.equal([]);
      plant(session);
      const { findings } = audited(session);
      const found = findings.find(({ message }) => message === wanted.message);
      expect(found, JSON.stringify(findings)).to.include(wanted);
    });
  }

  it('names one changed id once, however many calls have it before them', () => {
    const session = threeTurns();
    unpackIds(traceOf(session).responseIds).set([99], 0);
    expect(audited(session).findings.map(({ call_id, index }) => [call_id, index])).to.deep.equal([
      ['c0', 0],
    ]);
  });

  it('counts the records alone where there is no trajectory', () => {
    const audit = new SessionAudit();
    for (const call of threeTurns().calls) audit.add(call);
    expect(audit.finish())
      .to.include({ calls: 3, sampled: 5, engine_usage: 5 })
      .and.deep.include({ findings: [] });
  });
});
