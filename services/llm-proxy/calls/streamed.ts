// A streamed call: deltas go to the harness as they come; the end is held back until the record is durable.
import { asPolarError, PolarError, type Reason } from '../../common/errors.ts';
import type { StreamWriter } from '../dialects/dialect.ts';
import { arrayOf, countOf, isObject, type JsonObject, objectOf, textOf } from '../domain/json.ts';
import { finishReasonOf, ReplyAssembler, saysSomething } from '../domain/reply.ts';
import { tellsIdsEarly } from '../engines/adapter.ts';
import type { PlacedCall } from '../engines/placed-call.ts';
import {
  type Choice,
  countOfUnknown,
  type Exchange,
  interrupted,
  noTokenIds,
  requireIds,
} from './exchange.ts';

/** What is known of a reply so far. */
interface Progress {
  readonly tried: PlacedCall;
  readonly stream: StreamWriter;
  readonly signal: AbortSignal;
  /** By the index of the choice. */
  readonly choices: Map<number, ChoiceProgress>;
  /** From the last choice's finish chunk on, what the harness is to see waits here. */
  readonly held: string[];
  usage: JsonObject;
}

interface ChoiceProgress {
  readonly assembler: ReplyAssembler;
  finish: string | undefined;
}

export async function streamedReply(exchange: Exchange): Promise<void> {
  const { delivery } = exchange.parts;
  const begun = await exchange.ask((tried, signal) => untilFirstToken(tried, signal));
  exchange.firstToken();
  const progress = progressOf(begun, delivery.stream);
  try {
    requireEarlyIds(begun.tried);
    for (const chunk of begun.first) await pass(exchange, progress, chunk);
    for await (const chunk of begun.rest) await pass(exchange, progress, chunk);
    requireWhole(exchange, progress);
  } catch (error) {
    await begun.rest.return();
    await recordBroken(exchange, progress, error);
    throw error;
  }
  await finish(exchange, progress);
}

const progressOf = ({ tried, signal }: Begun, stream: StreamWriter): Progress => ({
  tried,
  signal,
  stream,
  choices: new Map(),
  held: [],
  usage: {},
});

interface Begun {
  readonly tried: PlacedCall;
  readonly signal: AbortSignal;
  /** Up to and with the first chunk that holds something sampled, or the end. */
  readonly first: readonly JsonObject[];
  readonly rest: AsyncGenerator<JsonObject, void>;
}

/** One try. Nothing has gone to the harness yet, so a stream that breaks here can be tried again. */
async function untilFirstToken(tried: PlacedCall, signal: AbortSignal): Promise<Begun> {
  const rest = tried.chunks(signal);
  const first: JsonObject[] = [];
  try {
    for (;;) {
      const next = await rest.next();
      if (next.done) return { tried, signal, first, rest };
      first.push(next.value);
      if (choicesIn(next.value).some(begins)) return { tried, signal, first, rest };
    }
  } catch (error) {
    const { reason, message, retryAfterMs = 1_000 } = asPolarError(error);
    if (reason !== 'ENGINE_STREAM_CUT') throw error;
    throw new PolarError('ENGINE_UNAVAILABLE', message, { cause: error, retryAfterMs });
  }
}

const choicesIn = (chunk: JsonObject): readonly JsonObject[] => arrayOf(chunk['choices']).filter(isObject);

const begins = (choice: JsonObject): boolean =>
  saysSomething(objectOf(choice['delta'])) || textOf(choice['finish_reason']) !== undefined;

/** Take a chunk in, and let the harness see it or hold it. */
async function pass(exchange: Exchange, progress: Progress, chunk: JsonObject): Promise<void> {
  const { asked, delivery } = exchange.parts;
  for (const choice of choicesIn(chunk)) take(progress, choice);
  if (isObject(chunk['usage'])) progress.usage = chunk['usage'];
  const seen = progress.stream.chunk(chunk);
  const finished = [...progress.choices.values()].filter((choice) => choice.finish !== undefined);
  if (finished.length >= asked.n) progress.held.push(seen);
  else if (seen !== '') await delivery.send(seen, progress.signal);
}

function take(progress: Progress, choice: JsonObject): void {
  const index = countOf(choice['index']);
  const known = progress.choices.get(index) ?? { assembler: new ReplyAssembler(), finish: undefined };
  progress.choices.set(index, known);
  known.assembler.add(objectOf(choice['delta']));
  known.finish ??= textOf(choice['finish_reason']);
}

/** Where ids come with the text, their absence is told before the harness has seen anything. */
function requireEarlyIds(tried: PlacedCall): void {
  if (!tellsIdsEarly(tried.engine.adapter)) return;
  if (tried.tokens.promptIds === undefined) throw noTokenIds(tried, 'prompt');
}

function requireWhole({ parts }: Exchange, { tried, choices }: Progress): void {
  const ended = [...choices.values()].filter(({ finish }) => finish !== undefined);
  if (ended.length < parts.asked.n) {
    const message = `the engine at ${tried.engine.name} ended a stream without a finish_reason`;
    throw new PolarError('ENGINE_STREAM_CUT', message);
  }
  requireIds(tried, choices.keys());
}

async function finish(exchange: Exchange, progress: Progress): Promise<void> {
  const { tried, usage, held, stream } = progress;
  const choices = [...progress.choices].map(([index, { assembler, finish }]): Choice => {
    return { index, finishReason: finishReasonOf(finish ?? 'stop'), reply: assembler.message };
  });
  const error = choices.some(({ finishReason }) => finishReason === 'abort') ? interrupted(tried) : undefined;
  const kept = error === undefined ? choices : choices.map((choice) => ({ ...choice, reply: undefined }));
  await exchange.record({ tried, choices: kept, usage, error });
  if (error !== undefined) throw error;
  exchange.parts.call.signal.throwIfAborted();
  exchange.parts.delivery.end(held.join('') + stream.end());
}

/** How a reply ended that nobody was at fault for. */
const BROKEN: Partial<Record<Reason, string>> = {
  CANCELLED: 'cancelled',
  SESSION_CLOSED: 'cancelled',
  POLICY_PAUSED: 'abort',
};

/** What was sampled until a stream broke is recorded, if only how much it was. */
async function recordBroken(exchange: Exchange, progress: Progress, error: unknown): Promise<void> {
  const { tried, usage } = progress;
  const { promptIds, choices: sampled } = tried.tokens;
  if (promptIds === undefined && !sampled.some((one) => countOfUnknown(one) !== undefined)) return;
  const { reason } = asPolarError(error);
  const finishReason = BROKEN[reason] ?? 'error';
  const indexes = progress.choices.size === 0 ? [0] : [...progress.choices.keys()];
  const choices = indexes.map((index) => ({ index, finishReason, reply: undefined }));
  await exchange.record({ tried, choices, usage, error });
}
