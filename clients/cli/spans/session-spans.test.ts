// A session as the spans that a collector shows.
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome, SessionSchema } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { CallSummary } from './call-span.ts';
import { sessionSpans } from './session-spans.ts';

const AT = Date.UTC(2026, 0, 1);

const session = create(SessionSchema, {
  ...{ sessionId: 's1-0', taskId: 't1', harness: 'pi', outcome: Outcome.COMPLETED, reward: 0.5 },
  ...{ createTime: timestampFromMs(AT), endTime: timestampFromMs(AT + 9_000) },
  stats: { calls: 1, sampledTokens: 7n, trainedTokens: 7n },
  attempts: [
    {
      ...{ attempt: 1, nodeId: 'n1', failure: { reason: 'NODE_LOST' } },
      ...{ startTime: timestampFromMs(AT + 1_000), endTime: timestampFromMs(AT + 2_000) },
      times: { queueMs: 1_000n, prepareMs: 1_000n },
    },
    {
      ...{ attempt: 2, nodeId: 'n2', startTime: timestampFromMs(AT + 3_000) },
      endTime: timestampFromMs(AT + 9_000),
      times: {
        queueMs: 500n,
        prepareMs: 200n,
        readyMs: 0n,
        runMs: 4_000n,
        buildMs: 100n,
        evaluateMs: 1_700n,
      },
    },
  ],
});

const call: CallSummary = {
  ...{ call_id: 'c1', role: 'main', model: 'm', policy_version: 3, engine: 'vllm', engine_url: 'http://e:1' },
  ...{ engine_tries: 1, mode: 'token', dialect: 'openai-chat', sampling: { temperature: 1, seed: 11 } },
  ...{ finish_reason: 'stop', error_reason: '', drift: '', prompt_tokens: 20, sampled_tokens: 7 },
  ...{ cached_tokens: 16, start_ms: AT + 4_000, queue_ms: 0, first_token_ms: 30, total_ms: 250 },
};

interface Shown {
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceId: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { key: string; value: object }[];
  readonly events: readonly object[];
  readonly status: object;
}

const made = (calls: readonly CallSummary[] = [call]): Shown[] =>
  sessionSpans(session, new Map([[2, calls]])) as unknown as Shown[];
const afterMs = (nanos: string): number => Number((BigInt(nanos) - BigInt(AT) * 1_000_000n) / 1_000_000n);

describe('the spans of a session', () => {
  it('lie in each other as attempts, stages and calls do', () => {
    const spans = made();
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    const pathOf = ({ name, parentSpanId }: Shown): string => {
      const parent = byId.get(parentSpanId ?? '');
      return parent === undefined ? name : `${pathOf(parent)} > ${name}`;
    };
    expect(
      spans.map((span) => [pathOf(span), afterMs(span.startTimeUnixNano), afterMs(span.endTimeUnixNano)]),
    ).to.eql([
      ['session pi', 0, 9_000],
      ['session pi > attempt 1', 0, 2_000],
      ['session pi > attempt 1 > queue', 0, 1_000],
      ['session pi > attempt 1 > prepare', 1_000, 2_000],
      ['session pi > attempt 2', 2_500, 9_000],
      ['session pi > attempt 2 > queue', 2_500, 3_000],
      ['session pi > attempt 2 > prepare', 3_000, 3_200],
      ['session pi > attempt 2 > run', 3_200, 7_200],
      ['session pi > attempt 2 > build', 7_200, 7_300],
      ['session pi > attempt 2 > evaluate', 7_200, 8_900],
      ['session pi > attempt 2 > run > chat m', 4_000, 4_250],
    ]);
    expect(byId.size).to.equal(spans.length);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).to.equal(1);
    expect(spans[0]?.traceId).to.match(/^[0-9a-f]{32}$/);
    expect(spans[0]?.spanId).to.match(/^[0-9a-f]{16}$/);
    expect(made()).to.eql(spans);
  });

  it('tell of a call what it was asked, took and counted', () => {
    const span = made().at(-1);
    const told = Object.fromEntries(span?.attributes.map(({ key, value }) => [key, value]) ?? []);
    expect(told).to.deep.include({
      'gen_ai.request.model': { stringValue: 'm' },
      'gen_ai.request.temperature': { doubleValue: 1 },
      'gen_ai.request.seed': { intValue: '11' },
      'gen_ai.usage.input_tokens': { intValue: '20' },
      'gen_ai.usage.output_tokens': { intValue: '7' },
      'gen_ai.response.finish_reasons': { arrayValue: { values: [{ stringValue: 'stop' }] } },
    });
    expect(told).not.to.have.any.keys('error.type', 'gen_ai.request.top_p', 'polar.drift');
    expect(span?.events).to.eql([
      { name: 'first token', timeUnixNano: `${BigInt(AT + 4_030) * 1_000_000n}` },
    ]);
  });

  it('say what failed, and why', () => {
    const spans = made([{ ...call, error_reason: 'ENGINE_TIMEOUT' }]);
    const failed = spans.filter(({ status }) => 'code' in status);
    expect(failed.map(({ name, status }) => [name, status])).to.eql([
      ['attempt 1', { code: 2, message: 'NODE_LOST' }],
      ['chat m', { code: 2, message: 'ENGINE_TIMEOUT' }],
    ]);
  });
});
