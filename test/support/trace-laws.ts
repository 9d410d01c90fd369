// The laws that hold whatever a builder's configuration is, checked on what was built: served context, exactly once,
// logprobs belong to their token, conservation. Written from the calls as recorded; it knows nothing of forests.
import { unpackFloats, unpackIds } from '../../services/common/columns.ts';
import type { Build } from '../../services/reconstructor/domain/build.ts';
import type { RecordedCall } from './records.ts';

/** What is wrong; empty where nothing is. */
export function breachesOf(
  calls: readonly RecordedCall[],
  { traces, stats }: Build,
  maxTokens?: number,
): string[] {
  const bad: string[] = [];
  const byId = new Map(calls.map((call) => [call.call_id, call]));
  const seen = new Set<string>();
  let trained = 0;
  for (const [n, trace] of traces.entries()) {
    const say = (what: string): void => void bad.push(`trace ${n}: ${what}`);
    const [prompt, response] = [unpackIds(trace.promptIds), unpackIds(trace.responseIds)];
    const logprobs = unpackFloats(trace.logprobs);
    const { lossMask, spans } = trace;
    if (lossMask.length !== response.length || logprobs.length !== response.length) say('lengths');
    if (maxTokens !== undefined && prompt.length + response.length > maxTokens) say('too long');
    const full = [...prompt, ...response];
    let covered = 0;
    for (const [i, { callId, start, length, maskedReason }] of spans.entries()) {
      const call = byId.get(callId);
      if (call === undefined || seen.has(callId)) say(`call ${callId} is unknown, or in traces twice`);
      if (call === undefined) continue;
      seen.add(callId);
      const at = prompt.length + start;
      if (call.prompt_ids.length !== at || call.prompt_ids.some((id, j) => full[j] !== id))
        say(`context of ${callId}`);
      const whole = length === call.sampled_ids.length;
      if (!whole && !(i === spans.length - 1 && full.length === maxTokens)) say(`${callId} is cut`);
      if (call.sampled_ids.slice(0, length).some((id, j) => full[at + j] !== id)) say(`ids of ${callId}`);
      if (start < covered) say(`${callId} overlaps`);
      for (let j = covered; j < start; j++) if (lossMask[j] || logprobs[j]) say(`context ${j} is trained`);
      for (let j = 0; j < length; j++) {
        const given = call.logprobs?.length === call.sampled_ids.length ? call.logprobs[j] : null;
        const good = given != null && given <= 0 && given > -9998;
        const one = lossMask[start + j] === 1;
        trained += one ? 1 : 0;
        if (one && (!good || logprobs[start + j] !== Math.fround(given))) say(`logprob ${j} of ${callId}`);
        if (!one && logprobs[start + j] !== 0) say(`masked id ${j} of ${callId} has a logprob`);
        if (!one && good && maskedReason === '') say(`id ${j} of ${callId} is masked without a reason`);
      }
      covered = start + length;
    }
    if (covered !== response.length) say('ids behind the last call');
    if (!lossMask.includes(1)) say('nothing is trained');
  }
  const masked = Object.values(stats.maskedTokens).reduce((sum, count) => sum + Number(count), 0);
  const sampled = calls.reduce((sum, call) => sum + call.sampled_ids.length, 0);
  if (Number(stats.trainedTokens) !== trained) bad.push(`${stats.trainedTokens} trained, counted ${trained}`);
  if (trained + masked !== sampled || Number(stats.sampledTokens) !== sampled) {
    bad.push(`${trained} trained and ${masked} masked are not ${sampled} sampled`);
  }
  return bad;
}
