// The anthropic-messages dialect: what whole and streamed replies share.
import { countOf, type JsonObject, objectOf, textOf } from '../../domain/json.ts';

/** How a request wants its reply. */
export interface View {
  /** Model name that the harness knows. */
  readonly shown: string;
  /** Its stop sequences. */
  readonly stops: readonly string[];
  /** False: of thinking the signature alone. */
  readonly showsThinking: boolean;
}

/** A call's block without its arguments. */
export const toolUse = (id: string, index: number, call: JsonObject): JsonObject => ({
  type: 'tool_use',
  id: textOf(call['id']) ?? `toolu_${id}_${index}`,
  name: textOf(objectOf(call['function'])['name']) ?? '',
  input: {},
});

export const messageId = (reply: JsonObject): string =>
  `msg_${(textOf(reply['id']) ?? '0').replace(/^chatcmpl-/, '')}`;

export const emptyMessage = (id: string, model: string): JsonObject => ({
  id,
  type: 'message',
  role: 'assistant',
  model,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  stop_details: null,
  container: null,
});

/** Why the reply ended. Engines tell what they met as `stop_reason` (vLLM) or `matched_stop` (SGLang). */
export function stopOf(choice: JsonObject, calls: number, stops: readonly string[]): JsonObject {
  const met = textOf(choice['stop_reason']) ?? textOf(choice['matched_stop']);
  const sequence = met !== undefined && stops.includes(met) ? met : null;
  const reason = reasonOf(choice['finish_reason'] === 'length', calls, sequence);
  const refused = choice['finish_reason'] === 'content_filter';
  return {
    stop_reason: refused ? 'refusal' : reason,
    stop_sequence: reason === 'stop_sequence' && !refused ? sequence : null,
    stop_details: null,
  };
}

function reasonOf(cut: boolean, calls: number, sequence: string | null): string {
  if (cut) return 'max_tokens';
  if (calls > 0) return 'tool_use';
  return sequence === null ? 'end_turn' : 'stop_sequence';
}

/** Tokens as the API counts them: those from the cache apart. */
export function usageOf(usage: JsonObject): JsonObject {
  const cached = countOf(objectOf(usage['prompt_tokens_details'])['cached_tokens']);
  const thinking = objectOf(usage['completion_tokens_details'])['reasoning_tokens'];
  return {
    input_tokens: Math.max(0, countOf(usage['prompt_tokens']) - cached),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: countOf(usage['completion_tokens']),
    output_tokens_details: typeof thinking === 'number' ? { thinking_tokens: thinking } : null,
  };
}
