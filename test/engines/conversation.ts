// A session as a harness has it: says, hears, says again what it heard, and reads afterwards what was recorded.
import { expect } from 'chai';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { unpackFloats, unpackIds } from '../../services/common/columns.ts';
import { promptsOf, readEvents, type TestProxy } from '../support/llm-proxy.ts';
import type { Message, Sampling } from './kinds/engine.ts';

/** A record with its whole prompt. */
export interface Recorded {
  readonly record: Completion;
  readonly prompt: readonly number[];
  readonly sampled: readonly number[];
  readonly logprobs: readonly number[];
}

export interface Reply {
  readonly content: string;
  readonly finishReason: string;
}

interface Choice {
  readonly message?: { readonly content: string | null };
  readonly delta?: { readonly content?: string | null };
  readonly finish_reason: string | null;
}

let sessions = 0;

export class Conversation {
  readonly #proxy: TestProxy;
  readonly #sessionId: string;
  readonly #capability: string;
  readonly messages: Message[] = [];

  private constructor(proxy: TestProxy, sessionId: string, capability: string) {
    this.#proxy = proxy;
    this.#sessionId = sessionId;
    this.#capability = capability;
  }

  static async start(proxy: TestProxy): Promise<Conversation> {
    const sessionId = `real-${sessions++}`;
    return new Conversation(proxy, sessionId, await proxy.admit(sessionId));
  }

  /** One turn; the reply becomes part of what is said next. */
  async say(content: string, stream: boolean, sampling: Sampling): Promise<Reply> {
    this.messages.push({ role: 'user', content });
    const answer = await this.call({ ...bodyOf(sampling), stream });
    expect(answer.status, await refusal(answer)).to.equal(200);
    const reply = stream ? await streamed(answer) : whole(await answer.json());
    this.messages.push({ role: 'assistant', content: reply.content });
    return reply;
  }

  /** What is said so far, as a call. */
  call(body: object, init: RequestInit = {}): Promise<Response> {
    return this.#proxy.chat(this.#capability, { model: 'policy', messages: this.messages, ...body }, init);
  }

  /** The record of the last turn. */
  async last(): Promise<Recorded> {
    const one = (await this.recorded()).at(-1);
    if (one === undefined) throw new Error('nothing is recorded');
    return one;
  }

  /** No more calls; those in flight are settled and recorded. */
  async close(): Promise<void> {
    await this.#proxy.client.closeSession({ sessionId: this.#sessionId, attempt: 1 });
  }

  async recorded(): Promise<Recorded[]> {
    const records = await this.#proxy.records(this.#sessionId);
    const prompts = promptsOf(records);
    return records.map((record, i) => ({
      record,
      prompt: prompts[i] ?? [],
      sampled: [...unpackIds(record.sampledIds)],
      logprobs: record.logprobs === undefined ? [] : [...unpackFloats(record.logprobs)],
    }));
  }
}

const bodyOf = ({ temperature, maxTokens, seed, bias }: Sampling): object => ({
  temperature,
  // llama.cpp cuts the vocabulary down where nobody says otherwise.
  top_k: temperature === 0 ? 1 : -1,
  top_p: 1,
  min_p: 0,
  max_tokens: maxTokens,
  ...(seed !== undefined && { seed }),
  ...(bias !== undefined && { logit_bias: bias }),
});

const refusal = async (answer: Response): Promise<string> => (answer.ok ? '' : await answer.clone().text());

function whole(body: unknown): Reply {
  const [choice] = (body as { choices: Choice[] }).choices;
  return { content: choice?.message?.content ?? '', finishReason: choice?.finish_reason ?? '' };
}

async function streamed(answer: Response): Promise<Reply> {
  const { events, whole: ended } = await readEvents(answer);
  expect(ended && events.at(-1) === '[DONE]', 'the stream ends with [DONE]').to.equal(true);
  const choices = events
    .slice(0, -1)
    .flatMap((event) => (JSON.parse(event) as { choices: Choice[] }).choices.slice(0, 1));
  return {
    content: choices.map(({ delta }) => delta?.content ?? '').join(''),
    finishReason: choices.map(({ finish_reason }) => finish_reason).find((word) => word !== null) ?? '',
  };
}
