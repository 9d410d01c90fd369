// What the LLM proxy counts, for `/metrics`.
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { CALL_SECONDS, counter, gauge, histogram } from '../common/metrics.ts';
import type { Engines } from './engines/engines.ts';

const ID_BYTES = 4;

const calls = counter(
  'polar_llm_proxy_calls_total',
  'Recorded model calls, by dialect, mode, finish reason and the reason of a failure.',
  ['dialect', 'mode', 'finish_reason', 'error_reason'],
);
const tokens = counter('polar_llm_proxy_tokens_total', 'Ids of recorded calls: of prompts, and sampled.', [
  'kind',
]);
const drifted = counter(
  'polar_llm_proxy_drifts_total',
  'Calls that do not extend their conversation, by why.',
  ['drift'],
);
const seconds = histogram(
  'polar_llm_proxy_call_seconds',
  'From the call to the end of the reply.',
  CALL_SECONDS,
);
const firstToken = histogram(
  'polar_llm_proxy_first_token_seconds',
  'To the first sampled token of a streamed reply.',
  CALL_SECONDS,
);
const waited = histogram(
  'polar_llm_proxy_queue_seconds',
  'Waiting for a place at an engine, or for the end of a pause.',
  CALL_SECONDS,
);
const failed = counter(
  'polar_llm_proxy_calls_failed_total',
  'Calls that gave the harness an error, by reason.',
  ['reason'],
);
const refused = counter(
  'polar_llm_proxy_requests_refused_total',
  'Requests that became no call, by reason.',
  ['reason'],
);
export const callsJoined = counter(
  'polar_llm_proxy_calls_joined_total',
  'Requests that shared the reply of an equal one in flight.',
);
export const callsHeld = counter(
  'polar_llm_proxy_calls_held_total',
  'Calls that were given up for a pause and asked again.',
);
export const usageDiffers = counter(
  'polar_llm_proxy_usage_differs_total',
  'Calls whose sampled ids are not as many as the engine counted.',
);
const engineCalls = gauge('polar_llm_proxy_engine_calls', 'Calls in flight at an engine.', [
  'pool',
  'engine',
]);
const engineUp = gauge(
  'polar_llm_proxy_engine_up',
  '1: the engine takes calls; 0: it failed lately, or is drained.',
  ['pool', 'engine'],
);
const waiting = gauge('polar_llm_proxy_calls_waiting', 'Calls that wait for a place at an engine.', ['pool']);

/** For all that have the same labels, which are few. */
const bound = new Map<string, { inc(value?: number): void }>();
const promptIds = tokens.labels({ kind: 'prompt' });
const sampledIds = tokens.labels({ kind: 'sampled' });

export function callRecorded(record: Completion): void {
  const { dialect, mode, finishReason, errorReason, times, drift } = record;
  const key = `${dialect} ${mode} ${finishReason} ${errorReason}`;
  let counted = bound.get(key);
  if (counted === undefined) {
    counted = calls.labels({ dialect, mode, finish_reason: finishReason, error_reason: errorReason });
    bound.set(key, counted);
  }
  counted.inc();
  promptIds.inc(record.promptLength);
  sampledIds.inc(record.sampledIds.byteLength / ID_BYTES);
  if (drift !== '') drifted.inc({ drift });
  if (times === undefined) return;
  seconds.observe(times.totalMs / 1_000);
  waited.observe(times.queueMs / 1_000);
  if (times.firstTokenMs > 0) firstToken.observe(times.firstTokenMs / 1_000);
}

export const callFailed = (reason: string): void => failed.inc({ reason });
export const requestRefused = (reason: string): void => refused.inc({ reason });

/** Engines as they are. The policy's pool has no name. */
export function showEngines(engines: Engines): Disposable {
  const shown = new DisposableStack();
  const members = () =>
    engines.pools.flatMap(({ spec, members }) => members.map((member) => ({ pool: spec.alias, member })));
  const labels = ({ pool, member }: ReturnType<typeof members>[number]) => ({
    pool,
    engine: member.engine.name,
  });
  shown.use(engineCalls.from(() => members().map((one) => [labels(one), one.member.load])));
  shown.use(
    engineUp.from(() => members().map((one) => [labels(one), Number(one.member.up && !one.member.draining)])),
  );
  shown.use(waiting.from(() => engines.pools.map((pool) => [{ pool: pool.spec.alias }, pool.waiting])));
  return shown;
}
