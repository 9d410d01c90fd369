// For tests: an engine on a free port, and calls to it.
import type { DialectName } from './dialects/dialect.ts';
import { llamacpp } from './dialects/llamacpp.ts';
import { sglang } from './dialects/sglang.ts';
import { vllm } from './dialects/vllm.ts';
import type { ChatMessage, ToolDefinition } from './request.ts';
import { parseScript } from './script/schema.ts';
import { type RunningEngine, startEngine } from './server.ts';
import { DEFAULT_SWITCHES, mergeSwitches, type SomeSwitches } from './switches.ts';

/** A request, or a part of one. */
export type Body = Record<string, unknown>;

export interface ToolCall {
  readonly id: string;
  readonly index: number;
  readonly function: { name: string; arguments: string };
}

interface Message {
  readonly role?: string;
  readonly content?: string | null;
  readonly reasoning?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: ToolCall[] | null;
}

interface Logprob {
  readonly token: string;
  readonly logprob: number;
  readonly top_logprobs: unknown[];
}

interface Version {
  readonly version: string;
  readonly start: number;
  readonly end: number;
}

/** Fields of both dialects; which of them are there is what the tests are about. */
interface Choice {
  readonly index: number;
  readonly message: Message;
  readonly delta: Message;
  readonly logprobs: { readonly content: Logprob[] } | null;
  readonly finish_reason: string | null;
  readonly stop_reason?: unknown;
  readonly matched_stop?: unknown;
  readonly token_ids: number[] | null;
  readonly prompt_token_ids: number[];
  readonly response_token_ids: number[];
  readonly meta_info: { readonly output_token_logprobs: unknown[] };
}

/** A whole reply or a stream's event. */
export interface Reply {
  readonly choices: [Choice, ...Choice[]];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
  readonly prompt_token_ids: number[];
  readonly sglext?: { readonly input_ids: number[]; readonly output_ids: [number[]] };
  readonly metadata: { readonly weight_versions: [Version, Version] };
}

export interface TestEngine {
  readonly dialect?: DialectName;
  /** YAML. */
  readonly script?: string;
  readonly switches?: SomeSwitches;
}

export function startTestEngine({ dialect, script, switches }: TestEngine): Promise<RunningEngine> {
  return startEngine({
    port: 0,
    dialect: { sglang, vllm, llamacpp }[dialect ?? 'sglang'],
    scripts: script === undefined ? [] : [parseScript(script, 'the script')],
    switches: mergeSwitches(DEFAULT_SWITCHES, switches),
    modelName: 'scripted-qwen3',
  });
}

export const user = (content: string): ChatMessage => ({ role: 'user', content });

export const BASH: ToolDefinition = {
  type: 'function',
  function: {
    name: 'bash',
    parameters: { type: 'object', required: ['command'], properties: { command: { type: 'string' } } },
  },
};

export function post(url: string, body: Body, switches?: string): Promise<Response> {
  const headers = {
    'content-type': 'application/json',
    ...(switches === undefined ? {} : { 'x-scripted-engine': switches }),
  };
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
}

export async function chat(url: string, body: Body, switches?: string): Promise<Reply> {
  return (await post(url, body, switches)).json() as Promise<Reply>;
}

/** All events of a stream but [DONE], which must be the last. */
export async function chatStream(url: string, body: Body, switches?: string): Promise<Reply[]> {
  const text = await (await post(url, { ...body, stream: true }, switches)).text();
  const events = text.split('\n\n').filter((event) => event !== '');
  if (events.pop() !== 'data: [DONE]') throw new Error(`the stream ends with ${text.slice(-80)}`);
  return events.map((event) => JSON.parse(event.slice('data: '.length)));
}

export interface Joined {
  role: string;
  content: string;
  reasoning: string;
  readonly tool_calls: ToolCall['function'][];
  readonly logprobs: Logprob[];
  readonly token_ids: number[];
  finish_reason: string | null;
}

/** One choice of a stream put together as a client does. */
export function joined(events: readonly Reply[], index = 0): Joined {
  const whole: Joined = {
    role: '',
    content: '',
    reasoning: '',
    tool_calls: [],
    logprobs: [],
    token_ids: [],
    finish_reason: null,
  };
  for (const choice of events.flatMap(({ choices }) => choices.filter((one) => one.index === index))) {
    const { role, content, reasoning, reasoning_content, tool_calls } = choice.delta;
    whole.role += role ?? '';
    whole.content += content ?? '';
    whole.reasoning += reasoning ?? reasoning_content ?? '';
    for (const call of tool_calls ?? []) {
      const known = whole.tool_calls[call.index];
      if (known === undefined) whole.tool_calls.push({ ...call.function });
      else known.arguments += call.function.arguments;
    }
    whole.logprobs.push(...(choice.logprobs?.content ?? []));
    whole.token_ids.push(...(choice.token_ids ?? []));
    whole.finish_reason ??= choice.finish_reason;
  }
  return whole;
}
