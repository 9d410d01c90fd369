// The google-generate dialect: what whole and streamed replies share.
import { countOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import { parseArguments } from '../nesting.ts';
import { sealReasoning } from '../sealed-reasoning.ts';

/** How a request wants its reply. */
export interface View {
  /** Model name that the harness knows. */
  readonly shown: string;
  readonly showsThoughts: boolean;
  /** A stream is one of events; false: one JSON array. */
  readonly events: boolean;
}

/** A call of a tool as the engine told it. */
export interface ToldCall {
  id: string;
  name: string;
  arguments: string;
}

/** The parts that are there when the candidate has ended, and why it has. */
export interface Ending {
  readonly parts: readonly JsonObject[];
  readonly said: JsonObject;
}

/**
 * Calls are whole or not there: of a candidate that was cut the last one is left out. Arguments that are no object fail
 * them all, as the API has it. The signature that holds the reasoning goes with the first call, else with an empty text.
 */
export function endingOf(finish: string | undefined, reasoning: string, calls: readonly ToldCall[]): Ending {
  const cut = finish === 'length';
  const made = calls.map((call) => ({ ...call, args: argsOf(call.arguments) }));
  const malformed = cut ? undefined : made.find(({ args }) => args === undefined);
  const kept = malformed === undefined ? made.filter(({ args }) => args !== undefined) : [];
  const parts: JsonObject[] = kept.map(({ id, name, args }) => ({
    functionCall: { id, name, args: args ?? {} },
  }));
  if (reasoning !== '') {
    if (parts.length === 0) parts.push({ text: '' });
    Object.assign(parts[0] ?? {}, { thoughtSignature: sealReasoning(reasoning) });
  }
  if (malformed === undefined) return { parts, said: { finishReason: finishReasonOf(finish) } };
  const finishMessage = `Malformed function call: ${malformed.name}(${malformed.arguments})`;
  return { parts, said: { finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage } };
}

/** Its last content. Google's client forgets a turn and what it answers where a content has no parts, as that of failed calls. */
export function closing(parts: readonly JsonObject[], said: JsonObject): JsonObject {
  const failed = said['finishReason'] === 'MALFORMED_FUNCTION_CALL';
  const shown = parts.length > 0 || failed ? [...parts] : [{ text: '' }];
  return { content: { role: 'model', parts: shown }, ...said };
}

function finishReasonOf(finish: string | undefined): string {
  if (finish === 'length') return 'MAX_TOKENS';
  return finish === 'content_filter' ? 'SAFETY' : 'STOP';
}

function argsOf(text: string): JsonObject | undefined {
  if (text === '') return {};
  const args = /^\s*\{/.test(text) ? parseArguments(text) : undefined;
  return isObject(args) ? args : undefined;
}

export const callId = (id: JsonValue | undefined, responseId: string, index: number): string =>
  textOf(id) ?? `call_${responseId}_${index}`;

export const responseIdOf = (reply: JsonObject): string =>
  (textOf(reply['id']) ?? '0').replace(/^chatcmpl-/, '');

export function usageOf(usage: JsonObject): JsonObject {
  const cached = countOf(objectOf(usage['prompt_tokens_details'])['cached_tokens']);
  const thoughts = countOf(objectOf(usage['completion_tokens_details'])['reasoning_tokens']);
  const [prompt, sampled] = [countOf(usage['prompt_tokens']), countOf(usage['completion_tokens'])];
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: Math.max(0, sampled - thoughts),
    totalTokenCount: prompt + sampled,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
  };
}
