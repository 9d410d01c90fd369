// A streamed call: deltas go to the harness as they come; the end is held back until the record is durable.
import { asPolarError, PolarError } from '../../common/errors.ts';
import {
  arrayOf,
  countOf,
  isObject,
  type JsonObject,
  type JsonValue,
  objectOf,
  textOf,
} from '../domain/json.ts';
import { chunksOf, metIn } from '../domain/made-stream.ts';
import { finishReasonOf, ReplyAssembler, saysSomething } from '../domain/reply.ts';
import { knowsPrompt } from '../domain/tokens.ts';
import { tellsIdsEarly } from '../engines/adapter.ts';
import type { PlacedCall } from '../engines/placed-call.ts';
import type { Taker } from '../engines/taker.ts';
import {
  type Choice,
  countOfUnknown,
  type Exchange,
  interrupted,
  noTokenIds,
  requireIds,
  tellsIds,
} from './exchange.ts';

interface ChoiceProgress {
  readonly assembler: ReplyAssembler;
  /** Unset: the harness is not shown them. */
  readonly logprobs: JsonValue[] | undefined;
  finish: string | undefined;
  /** The stop string that ended it, as the engine tells it. */
  met: JsonObject;
}

export async function streamedReply(exchange: Exchange): Promise<void> {
  const { loopShares } = exchange.parts.ctx;
  using _ = loopShares.stream();
  const { reply, over } = await exchange.ask((tried, signal) => untilFirstToken(exchange, tried, signal));
  try {
    await over;
    const share = loopShares.take();
    if (share !== undefined) await share;
    requireWhole(exchange, reply);
  } catch (error) {
    await recordBroken(exchange, reply, error);
    throw error;
  }
  await finish(exchange, reply);
}

/** What is known of a reply so far, on its way to the harness. */
class Reply implements Taker<JsonObject> {
  readonly tried: PlacedCall;
  /** Resolves with the first chunk that holds something sampled. */
  readonly begun: Promise<void>;
  /** By the index of the choice. */
  readonly choices = new Map<number, ChoiceProgress>();
  usage: JsonObject = {};
  readonly #exchange: Exchange;
  readonly #signal: AbortSignal;
  readonly #onBegun: () => void;
  /** Chunks before something was sampled; unset: it was. */
  #early: JsonObject[] | undefined = [];
  #finished = 0;
  /** What all chunks say alike. */
  #head: JsonObject = {};

  constructor(exchange: Exchange, tried: PlacedCall, signal: AbortSignal) {
    this.tried = tried;
    this.#exchange = exchange;
    this.#signal = signal;
    const { promise, resolve } = Promise.withResolvers<void>();
    [this.begun, this.#onBegun] = [promise, resolve];
  }

  take(chunk: JsonObject): void {
    if (this.#early === undefined) this.#pass(chunk);
    else {
      this.#early.push(chunk);
      if (choicesIn(chunk).some(begins)) this.#begin();
    }
  }

  flush(): Promise<void> | undefined {
    return this.#exchange.parts.delivery.flush(this.#signal);
  }

  /** The stream is over, maybe before anything was sampled. */
  async end(): Promise<void> {
    this.#begin();
    await this.flush();
  }

  /** From now on the harness sees it. */
  #begin(): void {
    const early = this.#early;
    if (early === undefined) return;
    this.#early = undefined;
    this.#exchange.firstToken();
    this.#onBegun();
    requireEarlyIds(this.tried);
    const { id = null, created = 0, model = null } = early[0] ?? {};
    this.#head = { id, created, model };
    this.#exchange.parts.delivery.begin(() => this.#past());
    for (const chunk of early) this.#pass(chunk);
  }

  /** Take a chunk in, and let the harness see it; from the last choice's finish chunk on it has to wait. */
  #pass(chunk: JsonObject): void {
    const { asked, delivery, call } = this.#exchange.parts;
    call.heard();
    for (const choice of arrayOf(chunk['choices'])) if (isObject(choice)) this.#add(choice);
    if (isObject(chunk['usage'])) this.usage = chunk['usage'];
    delivery.take(chunk, this.#finished >= asked.n);
  }

  /** The chunks that were passed, put together: nothing that has gone out is kept. */
  #past(): Iterable<JsonObject> {
    const choices = [...this.choices].map(([index, { assembler, logprobs, finish, met }]) => ({
      index,
      message: assembler.soFar,
      logprobs: logprobs === undefined ? null : { content: [...logprobs] },
      finish_reason: finish ?? null,
      ...met,
    }));
    const usage = Object.keys(this.usage).length === 0 ? null : this.usage;
    return chunksOf({ ...this.#head, choices, usage });
  }

  #add(choice: JsonObject): void {
    const index = countOf(choice['index']);
    let known = this.choices.get(index);
    if (known === undefined) {
      const logprobs = this.#exchange.parts.asked.showsLogprobs ? [] : undefined;
      known = { assembler: new ReplyAssembler(), logprobs, finish: undefined, met: {} };
      this.choices.set(index, known);
    }
    known.assembler.add(objectOf(choice['delta']));
    if (known.logprobs !== undefined)
      for (const entry of arrayOf(objectOf(choice['logprobs'])['content'])) known.logprobs.push(entry);
    const finish = textOf(choice['finish_reason']);
    if (finish === undefined || known.finish !== undefined) return;
    known.finish = finish;
    known.met = metIn(choice);
    this.#finished++;
  }
}

interface Begun {
  readonly reply: Reply;
  /** Resolves at the end of the stream; rejects where it breaks. */
  readonly over: Promise<void>;
}

/** One try. Nothing has gone to the harness yet, so that a stream that breaks here can be tried again. */
async function untilFirstToken(exchange: Exchange, tried: PlacedCall, signal: AbortSignal): Promise<Begun> {
  const reply = new Reply(exchange, tried, signal);
  const over = tried.stream(reply, signal).then(() => reply.end());
  try {
    await Promise.race([reply.begun, over]);
  } catch (error) {
    const { reason, message, retryAfterMs = 1_000 } = asPolarError(error);
    if (reason !== 'ENGINE_STREAM_CUT') throw error;
    throw new PolarError('ENGINE_UNAVAILABLE', message, { cause: error, retryAfterMs });
  }
  return { reply, over };
}

const choicesIn = (chunk: JsonObject): readonly JsonObject[] => arrayOf(chunk['choices']).filter(isObject);

const begins = (choice: JsonObject): boolean =>
  saysSomething(objectOf(choice['delta'])) || textOf(choice['finish_reason']) !== undefined;

/** Where ids come with the text, their absence is told before the harness has seen anything. */
function requireEarlyIds(tried: PlacedCall): void {
  if (!tellsIdsEarly(tried.engine.adapter)) return;
  if (!knowsPrompt(tried.tokens)) throw noTokenIds(tried, 'prompt');
}

function requireWhole({ parts }: Exchange, { tried, choices }: Reply): void {
  const ended = [...choices.values()].filter(({ finish }) => finish !== undefined);
  if (ended.length < parts.asked.n) {
    const message = `the engine at ${tried.engine.name} ended a stream without a finish_reason`;
    throw new PolarError('ENGINE_STREAM_CUT', message);
  }
  requireIds(tried, choices.keys());
}

async function finish(exchange: Exchange, { tried, choices: known, usage }: Reply): Promise<void> {
  const { call, delivery } = exchange.parts;
  const choices = [...known].map(([index, { assembler, finish }]): Choice => {
    return { index, finishReason: finishReasonOf(finish ?? 'stop'), reply: assembler.message };
  });
  const error = choices.some(({ finishReason }) => finishReason === 'abort') ? interrupted(tried) : undefined;
  const kept = error === undefined ? choices : choices.map((choice) => ({ ...choice, reply: undefined }));
  await exchange.record({ tried, choices: kept, usage, error });
  if (error !== undefined) throw error;
  call.signal.throwIfAborted();
  delivery.end();
}

/** What was sampled until a stream broke is recorded, if only how much it was. */
async function recordBroken(exchange: Exchange, reply: Reply, error: unknown): Promise<void> {
  const { tried, usage } = reply;
  const unknown = tried.tokens.choices.some((one) => countOfUnknown(one) !== undefined);
  // Of an engine that tells no ids it is only known that something was sampled.
  const told = tellsIds(tried) ? knowsPrompt(tried.tokens) || unknown : reply.choices.size > 0;
  if (!told) return;
  const choices = reply.choices.size === 0 ? [0] : [...reply.choices.keys()];
  await exchange.recordBroken({ tried, choices, usage, error });
}
