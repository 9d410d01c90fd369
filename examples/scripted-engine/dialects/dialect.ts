// What the engines' chat dialects have in common.
import { Buffer } from 'node:buffer';
import type { RequestFault } from '../faults.ts';
import type { ExpertModel } from '../reply/experts.ts';
import type { Generation } from '../reply/generation.ts';
import type { Logprobs, TokenLogprob } from '../reply/logprobs.ts';
import type { Delta } from '../reply/parser.ts';
import type { ChatRequest } from '../request.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';

export type DialectName = 'sglang' | 'vllm' | 'llamacpp';

/** One call, as far as it is known before the first token. */
export interface ChatCall {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
  readonly request: ChatRequest;
  readonly promptIds: readonly number[];
  readonly tokenizer: Tokenizer;
  /** A tool-call parser is at work. */
  readonly parsesTools: boolean;
  /** Switches. */
  readonly givesTokenIds: boolean;
  readonly givesLogprobs: boolean;
  /** 0: as many as there are. */
  readonly promptTokensTold: number;
  readonly experts: ExpertModel;
}

export interface VersionSpan {
  readonly version: string;
  /** First token and the one after the last. */
  readonly start: number;
  end: number;
}

export interface Choice {
  readonly index: number;
  readonly generation: Generation;
  readonly logprobs: Pick<Logprobs, 'of' | 'top'>;
  /** Of each tool call. */
  readonly callIds: readonly string[];
  /** Weights that sampled the tokens so far. */
  readonly versions: readonly VersionSpan[];
}

export type Body = Record<string, unknown>;

export interface Dialect {
  readonly name: DialectName;
  /** Throws a RequestFault for what this engine refuses. */
  check(request: ChatRequest, model: string): void;
  overflow(promptTokens: number, tokensMax: number | undefined, contextTokens: number): string;
  error(fault: RequestFault): Body;
  /** The same as the last event of a stream. */
  errorEvent(fault: RequestFault): Body;
  model(name: string, contextTokens: number, created: number): Body;
  reply(call: ChatCall, choices: readonly Choice[]): Body;
  /** Stream chunks: before a choice's first token, for its tokens `from` to `to`, and after all choices. */
  begin(call: ChatCall, choice: Choice): Body[];
  tokens(call: ChatCall, choice: Choice, from: number, to: number): Body[];
  close(call: ChatCall, choices: readonly Choice[]): Body[];
}

export function chunk(call: ChatCall, choices: readonly Body[], more: Body = {}): Body {
  const { id, created, model } = call;
  return { id, object: 'chat.completion.chunk', created, model, choices, ...more };
}

export const idsOf = (choice: Choice): number[] => choice.generation.steps.map(({ id }) => id);

/** Null where logprobs were not asked for or are switched off. */
export function logprobsOf(call: ChatCall, choice: Choice, from: number, to: number): Body | null {
  if (call.request.logprobs !== true || !call.givesLogprobs) return null;
  const top = call.request.top_logprobs ?? 0;
  const content = choice.generation.steps.slice(from, to).map(({ id }, i) => ({
    ...tokenEntry(call, { id, logprob: choice.logprobs.of(from + i, id) }),
    top_logprobs: choice.logprobs
      .top(from + i, id, top, call.tokenizer.size)
      .map((one) => tokenEntry(call, one)),
  }));
  return { content };
}

export function tokenEntry(
  { tokenizer, request }: Pick<ChatCall, 'tokenizer' | 'request'>,
  { id, logprob }: TokenLogprob,
): Body {
  const bytes = Buffer.from(tokenizer.bytesOf(id));
  const named = request.return_tokens_as_token_ids === true;
  return { token: named ? `token_id:${id}` : bytes.toString('utf8'), logprob, bytes: [...bytes] };
}

/** What tokens `from` to `to` add together; with the last one what was held back. */
export function deltaOf({ generation }: Choice, from: number, to: number): Delta {
  const deltas = generation.steps.slice(from, to).map(({ delta }) => delta);
  if (to === generation.steps.length) deltas.push(generation.rest);
  return {
    reasoning: deltas.map(({ reasoning }) => reasoning).join(''),
    content: deltas.map(({ content }) => content).join(''),
    calls: deltas.flatMap(({ calls }) => calls),
  };
}

/** Stream form of a delta; `reasoningField` is where the engine puts thinking. */
export function deltaBody(choice: Choice, delta: Delta, reasoningField: string): Body {
  return {
    ...(delta.reasoning === '' ? {} : { [reasoningField]: delta.reasoning }),
    ...(delta.content === '' ? {} : { content: delta.content }),
    ...(delta.calls.length === 0 ? {} : { tool_calls: delta.calls.map((one) => callDelta(choice, one)) }),
  };
}

function callDelta(choice: Choice, { index, name, arguments: text }: Delta['calls'][number]): Body {
  if (name === undefined) return { index, function: { arguments: text } };
  return { index, id: choice.callIds[index], type: 'function', function: { name, arguments: text } };
}

export function callsBody(choice: Choice): Body[] {
  return choice.generation.message.calls.map((call, index) => ({
    id: choice.callIds[index],
    index,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }));
}

export function usageOf(call: ChatCall, choices: readonly Choice[]): Body {
  const completion = choices.reduce((sum, { generation }) => sum + generation.steps.length, 0);
  const prompt = call.promptTokensTold || call.promptIds.length;
  return {
    prompt_tokens: prompt,
    total_tokens: prompt + completion,
    completion_tokens: completion,
    prompt_tokens_details: null,
  };
}

export const wantsUsage = (call: ChatCall): boolean => call.request.stream_options?.include_usage === true;
