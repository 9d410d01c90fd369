// A small HTTP engine that answers in the wire form of vLLM or SGLang. Its tokens are characters, so that a test can
// tell what must be recorded: a message is START, its role, its text, END.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { sleep } from '../../services/common/clock.ts';

const START = 1;
const END = 2;

export interface WireToolCall {
  id: string;
  name: string;
  arguments: string;
}

export interface WireReply {
  content?: string;
  reasoning?: string;
  toolCalls?: WireToolCall[];
  finish?: string;
  /** The stop sequence that ended it. */
  stopped?: string;
}

/** Switches; all can be changed between calls. */
export interface WireBehaviour {
  reply: (body: WireBody) => WireReply;
  /** Answer with this status instead; undefined: answer. */
  status: (body: WireBody) => { status: number; body: unknown; retryAfter?: string } | undefined;
  /** Cut the connection after so many text chunks. */
  cutAfter: number | undefined;
  /** Send an error event after so many text chunks. */
  errorAfter: number | undefined;
  /** Wait between text chunks, and before a whole reply. */
  delayMs: number;
  ids: boolean;
  /** -9999 for this sampled position. */
  hole: number | undefined;
  weightVersion: string;
}

export const plainBehaviour = (): WireBehaviour => ({
  reply: () => ({ content: 'hello' }),
  status: () => undefined,
  cutAfter: undefined,
  errorAfter: undefined,
  delayMs: 0,
  ids: true,
  hole: undefined,
  weightVersion: '7',
});

export interface WireBody {
  model: string;
  messages: { role: string; content?: string | null; tool_calls?: unknown[] }[];
  stream: boolean;
  [key: string]: unknown;
}

const codes = (text: string): number[] => [...text].map((letter) => letter.codePointAt(0) as number);
const textOf = (reply: WireReply): string =>
  (reply.reasoning ?? '') + (reply.content ?? '') + (reply.toolCalls ? JSON.stringify(reply.toolCalls) : '');

/** The ids of a conversation, ready for the assistant's turn. */
export function promptIds(messages: WireBody['messages']): number[] {
  const turns = messages.flatMap(({ role, content, tool_calls, ...rest }) => {
    const { reasoning_content: reasoning } = rest as { reasoning_content?: string };
    const calls = tool_calls?.map((call) => {
      const { id, function: called } = call as { id: string; function: { name: string; arguments: string } };
      return { id, ...called };
    });
    const text = (reasoning ?? '') + (content ?? '') + (calls ? JSON.stringify(calls) : '');
    return [START, ...codes(role), ...codes(text), END];
  });
  return [...turns, START, ...codes('assistant')];
}

export const sampledIds = (reply: WireReply): number[] => [...codes(textOf(reply)), END];
export const logprobsOf = (ids: readonly number[]): number[] => ids.map((_, i) => -((i % 7) + 1) / 8);

export class WireEngine implements AsyncDisposable {
  readonly kind: 'vllm' | 'sglang';
  behaviour: WireBehaviour = plainBehaviour();
  /** Chat bodies in the order in which they came. */
  readonly bodies: WireBody[] = [];
  /** Streams and replies that were given up by the other side. */
  aborted = 0;
  /** Accepted. */
  connections = 0;
  readonly #server: Server;
  readonly #gone = new AbortController();

  private constructor(kind: 'vllm' | 'sglang') {
    this.kind = kind;
    this.#server = createServer((request, response) => void this.#answer(request, response).catch(() => {}));
    this.#server.on('connection', () => this.connections++);
  }

  static async start(kind: 'vllm' | 'sglang', port = 0): Promise<WireEngine> {
    const engine = new WireEngine(kind);
    engine.#server.listen(port, '127.0.0.1');
    await once(engine.#server, 'listening');
    return engine;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Ends at once when the engine is disposed of. */
  async #pause(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, this.#gone.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#gone.abort();
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('close', () => {
      if (!response.writableFinished) this.aborted++;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.url === '/v1/models')
      return json(response, 200, { object: 'list', data: [{ id: 'served' }] });
    const body = JSON.parse(Buffer.concat(chunks).toString()) as WireBody;
    this.bodies.push(body);
    const failure = this.behaviour.status(body);
    if (failure !== undefined) {
      if (failure.retryAfter !== undefined) response.setHeader('retry-after', failure.retryAfter);
      return json(response, failure.status, failure.body);
    }
    if (request.url === '/tokenize') return json(response, 200, tokenized(body));
    const reply = this.behaviour.reply(body);
    if (body.stream) await this.#stream(body, reply, response);
    else {
      await this.#pause(this.behaviour.delayMs);
      json(response, 200, this.#whole(body, reply));
    }
  }

  #logprob(i: number, value: number): number {
    return i === this.behaviour.hole ? -9999 : value;
  }

  #stopped({ stopped }: WireReply): object {
    return { [this.kind === 'vllm' ? 'stop_reason' : 'matched_stop']: stopped ?? null };
  }

  #whole(body: WireBody, reply: WireReply): object {
    const ids = sampledIds(reply);
    const logprobs = logprobsOf(ids).map((value, i) => this.#logprob(i, value));
    const prompt = promptIds(body.messages);
    const given = this.behaviour.ids;
    const vllm = this.kind === 'vllm';
    const indexes = indexesOf(body);
    const choice = {
      message: messageOf(reply),
      logprobs: {
        content: logprobs.map((logprob, i) => ({ token: String(ids[i]), logprob, top_logprobs: [] })),
      },
      finish_reason: finishOf(reply),
      ...this.#stopped(reply),
      ...(vllm && given && { token_ids: ids }),
      ...(!vllm && given && { prompt_token_ids: prompt, response_token_ids: ids }),
      ...(!vllm && { meta_info: { output_token_logprobs: ids.map((id, i) => [logprobs[i], id, null]) } }),
    };
    if (!vllm && !given) choice.meta_info = { output_token_logprobs: [] };
    return {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: body.model,
      choices: indexes.map((index) => ({ index, ...choice })),
      usage: usageOf(prompt, ids, indexes.length),
      ...(vllm && given && { prompt_token_ids: prompt, prompt_logprobs: null }),
      ...(!vllm && { metadata: { weight_version: this.behaviour.weightVersion } }),
    };
  }

  async #stream(body: WireBody, reply: WireReply, response: ServerResponse): Promise<void> {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: body.model };
    const prompt = promptIds(body.messages);
    const ids = sampledIds(reply);
    const logprobs = logprobsOf(ids);
    const vllm = this.kind === 'vllm';
    const given = this.behaviour.ids;
    const send = (chunk: object): void =>
      void response.write(`data: ${JSON.stringify({ ...head, ...chunk })}\n\n`);
    const indexes = indexesOf(body);
    const choices = (delta: object, from: number, to: number, more: object = {}): object[] =>
      indexes.map((index) => ({ index, ...choice(delta, from, to, more) }));
    const choice = (delta: object, from: number, to: number, more: object): object => ({
      delta,
      logprobs: {
        content: logprobs
          .slice(from, to)
          .map((value, i) => ({ token: 'x', logprob: this.#logprob(from + i, value) })),
      },
      finish_reason: null,
      ...(vllm && given && { token_ids: ids.slice(from, to) }),
      ...more,
    });
    send({
      choices: indexes.map((index) => ({
        index,
        delta: { role: 'assistant', content: '' },
        logprobs: null,
        finish_reason: null,
      })),
      ...(vllm && given && { prompt_token_ids: prompt }),
    });
    let at = 0;
    for (const [n, { delta, length }] of deltasOf(reply).entries()) {
      if (n === this.behaviour.cutAfter) return void response.destroy();
      if (n === this.behaviour.errorAfter) {
        response.end(
          'data: {"error":{"message":"engine fell over","type":"InternalServerError","code":500}}\n\ndata: [DONE]\n\n',
        );
        return;
      }
      await this.#pause(this.behaviour.delayMs);
      if (response.destroyed) return;
      send({ choices: choices(delta, at, at + length) });
      at += length;
    }
    const ended = { finish_reason: finishOf(reply), ...this.#stopped(reply) };
    send({ choices: choices({}, at, ids.length, ended) });
    const usage = {
      ...((body['stream_options'] as object | undefined) && { usage: usageOf(prompt, ids, indexes.length) }),
    };
    if (vllm) send({ choices: [], ...usage });
    else
      send({
        choices: [],
        ...usage,
        ...(given && { sglext: { input_ids: prompt, output_ids: indexes.map(() => ids) } }),
      });
    response.end('data: [DONE]\n\n');
  }
}

const finishOf = (reply: WireReply): string => reply.finish ?? (reply.toolCalls ? 'tool_calls' : 'stop');

function tokenized({ messages, prompt }: Partial<WireBody>): object {
  const tokens = messages === undefined ? codes(String(prompt)) : promptIds(messages);
  return { count: tokens.length, max_model_len: 4096, tokens, token_strs: null };
}

/** Each choice of a call says the same. */
const indexesOf = ({ n }: WireBody): number[] =>
  Array.from({ length: typeof n === 'number' ? n : 1 }, (_, i) => i);

const usageOf = (prompt: number[], ids: number[], n: number): object => ({
  prompt_tokens: prompt.length,
  completion_tokens: ids.length * n,
  total_tokens: prompt.length + ids.length * n,
  prompt_tokens_details: { cached_tokens: 3 },
});

const wireCall = (call: WireToolCall): object => ({
  id: call.id,
  type: 'function',
  function: { name: call.name, arguments: call.arguments },
});

export const messageOf = (reply: WireReply): object => ({
  role: 'assistant',
  content: reply.content ?? null,
  ...(reply.reasoning !== undefined && { reasoning_content: reply.reasoning }),
  ...(reply.toolCalls && { tool_calls: reply.toolCalls.map(wireCall) }),
});

/** Pieces of three letters; a tool call's arguments letter by letter. `length` is how many ids a piece stands for. */
function deltasOf(reply: WireReply): { delta: object; length: number }[] {
  const pieces = (text: string): string[] => text.match(/.{1,3}/gsu) ?? [];
  const spoken = [
    ...pieces(reply.reasoning ?? '').map((text) => ({
      delta: { reasoning_content: text },
      length: [...text].length,
    })),
    ...pieces(reply.content ?? '').map((text) => ({ delta: { content: text }, length: [...text].length })),
  ];
  const calls = (reply.toolCalls ?? []).flatMap((call, index) => [
    {
      delta: {
        tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }],
      },
      length: 0,
    },
    ...[...call.arguments].map((letter) => ({
      delta: { tool_calls: [{ index, function: { arguments: letter } }] },
      length: 1,
    })),
  ]);
  return [...spoken, ...calls];
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
