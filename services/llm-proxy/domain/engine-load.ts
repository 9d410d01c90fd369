// What an engine tells of its load in the text form of Prometheus.

export interface EngineLoad {
  /** Calls that wait in it. */
  readonly callsWaiting: number;
  /** Part of its cache of keys and values that is used, 0 to 1; undefined where it does not tell. */
  readonly cacheUse: number | undefined;
}

/** SGLang (with --enable-metrics), vLLM, llama-server (with --metrics). */
const WAITING = ['sglang:num_queue_reqs', 'vllm:num_requests_waiting', 'llamacpp:requests_deferred'];
const CACHE_USE = [
  ...['sglang:token_usage', 'vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
  'llamacpp:kv_cache_usage_ratio',
];
const SAMPLE = /^([a-z:_]+)(?:\{[^\n]*\})?[ \t]+([0-9.eE+-]+)(?:[ \t]+-?\d+)?$/;

/** Undefined where it is no text of an engine. One that has several parts tells each: waiting adds up, cache use does not. */
export function loadIn(text: string): EngineLoad | undefined {
  const waiting: number[] = [];
  const used: number[] = [];
  for (const line of text.split('\n')) {
    const [, name = '', value = ''] = SAMPLE.exec(line.trimEnd()) ?? [];
    const number = Number(value);
    if (!Number.isFinite(number)) continue;
    if (WAITING.includes(name)) waiting.push(number);
    if (CACHE_USE.includes(name)) used.push(number);
  }
  if (waiting.length === 0) return undefined;
  return {
    callsWaiting: waiting.reduce((sum, one) => sum + Math.max(0, Math.round(one)), 0),
    cacheUse: used.length === 0 ? undefined : Math.min(1, Math.max(0, ...used)),
  };
}
