// A model call as a span, by the conventions for generative AI:
// https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
import { type Attributes, double, KIND, type SpanInit } from './otlp.ts';

/** A line of `ExportSession SUMMARIES`: docs/export-format.md. */
export interface CallSummary {
  readonly call_id: string;
  readonly role: string;
  readonly model: string;
  readonly policy_version: number;
  readonly engine: string;
  readonly engine_url: string;
  readonly engine_tries: number;
  readonly mode: string;
  readonly dialect: string;
  readonly sampling: Readonly<Record<string, unknown>>;
  readonly finish_reason: string;
  readonly error_reason: string;
  readonly drift: string;
  readonly prompt_tokens: number;
  readonly sampled_tokens: number;
  readonly cached_tokens: number;
  readonly start_ms: number;
  readonly queue_ms: number;
  readonly first_token_ms: number;
  readonly total_ms: number;
}

/** Below the span of that key. */
export function callSpan(call: CallSummary, parent: string): SpanInit {
  const { start_ms: startMs, queue_ms: queueMs, first_token_ms: firstMs } = call;
  const events = [
    ...(queueMs > 0 ? [{ name: 'engine asked', atMs: startMs + queueMs }] : []),
    ...(firstMs > 0 ? [{ name: 'first token', atMs: startMs + firstMs }] : []),
  ];
  return {
    ...{ key: `call ${call.call_id}`, parent, name: `chat ${call.model}`, kind: KIND.client, events },
    ...{ startMs, endMs: startMs + call.total_ms, attributes: attributesOf(call) },
    error: call.error_reason || undefined,
  };
}

function attributesOf(call: CallSummary): Attributes {
  const { sampling } = call;
  const number = (name: string): number | undefined => {
    const value = sampling[name];
    return typeof value === 'number' ? value : undefined;
  };
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': call.engine,
    'gen_ai.request.model': call.model,
    'gen_ai.request.temperature': double(number('temperature')),
    'gen_ai.request.top_p': double(number('top_p')),
    'gen_ai.request.top_k': number('top_k'),
    'gen_ai.request.max_tokens': number('max_tokens') ?? number('max_completion_tokens'),
    'gen_ai.request.seed': number('seed'),
    'gen_ai.response.finish_reasons': [call.finish_reason],
    'gen_ai.usage.input_tokens': call.prompt_tokens,
    'gen_ai.usage.output_tokens': call.sampled_tokens,
    'gen_ai.usage.cache_read.input_tokens': call.cached_tokens,
    'error.type': call.error_reason || undefined,
    'url.full': call.engine_url || undefined,
    'polar.call_id': call.call_id,
    'polar.role': call.role,
    'polar.mode': call.mode,
    'polar.dialect': call.dialect,
    'polar.policy_version': call.policy_version,
    'polar.engine_tries': call.engine_tries,
    'polar.drift': call.drift || undefined,
  };
}
