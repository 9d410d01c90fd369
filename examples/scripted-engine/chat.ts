// POST /v1/chat/completions, streaming and not.
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dialect } from './dialects/dialect.ts';
import { chatOfCompletion, completed } from './dialects/llamacpp.ts';
import { chatOf, generated } from './dialects/vllm-tokens.ts';
import type { Engine } from './engine.ts';
import { RequestFault } from './faults.ts';
import { pace, wait } from './pace.ts';
import { type ChatPlan, planChat } from './plan.ts';
import { type ChatRequest, readChat, readCompletion, readGenerate } from './request.ts';
import { SWITCHES_HEADER, type Switches } from './switches.ts';

/** Chunks of an instant generation that go out in one write. */
const CHUNKS_PER_WRITE = 32;

export async function handleChat(
  engine: Engine,
  body: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await answerChat(engine, body, readChat(body), request, response);
}

/** POST /inference/v1/generate of vLLM: a chat of which the ids are told and not the messages. */
export async function handleGenerate(
  engine: Engine,
  body: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await answerChat(engine, body, chatOf(engine, readGenerate(body)), request, response, generated);
}

/** POST /completion of llama-server with ids: the reply is text. */
export async function handleCompletion(
  engine: Engine,
  body: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const asked = chatOfCompletion(engine.model.tokenizer, readCompletion(body));
  await answerChat(engine, body, asked, request, response, completed);
}

async function answerChat(
  engine: Engine,
  body: string,
  asked: ChatRequest,
  request: IncomingMessage,
  response: ServerResponse,
  write: Dialect['reply'] = engine.options.dialect.reply,
): Promise<void> {
  engine.stats.calls++;
  const header = request.headers[SWITCHES_HEADER];
  const plan = planChat(engine, asked, typeof header === 'string' ? header : undefined);
  const { switches } = plan;
  const fate = engine.faults.decide(switches, body);
  const left = new AbortController();
  response.once('close', () => left.abort());
  engine.stats.running++;
  try {
    if (fate.stalls && switches.stall_after_tokens === 0) await wait(switches.stall_ms, left.signal);
    if (fate.fails) throw scriptedFault(engine, plan);
    if (fate.cut && switches.cut_before_head) return void response.destroy();
    const cutAfter = fate.cut ? switches.cut_after_tokens : Number.POSITIVE_INFINITY;
    const stallAt = fate.stalls ? switches.stall_after_tokens || Infinity : Infinity;
    const answer = plan.call.request.stream === true ? answerStream : answerWhole;
    await answer(engine, plan, { response, write, cutAfter, stallAt, signal: left.signal });
  } catch (error) {
    if (!left.signal.aborted) throw error;
    engine.stats.aborted++;
  } finally {
    engine.stats.running--;
  }
}

interface Answer {
  readonly response: ServerResponse;
  /** A whole reply. */
  readonly write: Dialect['reply'];
  /** Tokens. */
  readonly cutAfter: number;
  readonly stallAt: number;
  readonly signal: AbortSignal;
}

async function answerWhole(
  engine: Engine,
  plan: ChatPlan,
  { response, write, cutAfter, stallAt, signal }: Answer,
): Promise<void> {
  for await (const { to } of pace(engine, plan, stallAt, signal)) {
    if (to >= cutAfter) return void response.destroy();
  }
  const text = JSON.stringify(write(plan.call, plan.choices));
  response.writeHead(200, { 'content-type': 'application/json' }).end(text);
}

async function answerStream(engine: Engine, plan: ChatPlan, answer: Answer): Promise<void> {
  const { call, choices, switches } = plan;
  const { dialect } = engine.options;
  answer.response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
  });
  const events = new EventWriter(answer.response, answer.signal, isInstant(switches) ? CHUNKS_PER_WRITE : 1);
  await events.send(choices.flatMap((choice) => dialect.begin(call, choice)));
  if (!isInstant(switches)) await events.flush();
  for await (const { choice, from, to } of pace(engine, plan, answer.stallAt, answer.signal)) {
    await events.send(dialect.tokens(call, choice, from, Math.min(to, answer.cutAfter)));
    if (to >= answer.cutAfter) return await cutOff(events, engine, switches);
  }
  await events.send(dialect.close(call, choices));
  await events.end();
}

async function cutOff(events: EventWriter, { options }: Engine, switches: Switches): Promise<void> {
  if (!switches.cut_error) return await events.cut(switches.cut_clean);
  await events.send([
    options.dialect.errorEvent(new RequestFault(500, 'the script wants this call to break')),
  ]);
  await events.end();
}

const isInstant = ({ token_ms, stall_ms }: Switches): boolean => token_ms === 0 && stall_ms === 0;

/** Server-sent events, a few in one write, never more than the reader takes. */
class EventWriter {
  readonly #response: ServerResponse;
  readonly #signal: AbortSignal;
  readonly #eventsPerWrite: number;
  #waiting: string[] = [];

  constructor(response: ServerResponse, signal: AbortSignal, eventsPerWrite: number) {
    this.#response = response;
    this.#signal = signal;
    this.#eventsPerWrite = eventsPerWrite;
  }

  async send(bodies: readonly Record<string, unknown>[]): Promise<void> {
    for (const body of bodies) this.#waiting.push(`data: ${JSON.stringify(body)}\n\n`);
    if (this.#waiting.length >= this.#eventsPerWrite) await this.flush();
  }

  async flush(): Promise<void> {
    const text = this.#waiting.join('');
    this.#waiting = [];
    if (text === '' || this.#response.write(text)) return;
    await once(this.#response, 'drain', { signal: this.#signal });
  }

  async end(): Promise<void> {
    await this.flush();
    this.#response.end('data: [DONE]\n\n');
  }

  async cut(clean: boolean): Promise<void> {
    await this.flush();
    if (clean) this.#response.end();
    // What was written goes out before the socket is gone.
    else setImmediate(() => this.#response.destroy());
  }
}

function scriptedFault(engine: Engine, { call, switches }: ChatPlan): RequestFault {
  const { length } = call.promptIds;
  if (switches.error_status === 400) {
    return new RequestFault(400, engine.options.dialect.overflow(length, undefined, length - 1));
  }
  return new RequestFault(switches.error_status, 'the script wants this call to fail');
}
