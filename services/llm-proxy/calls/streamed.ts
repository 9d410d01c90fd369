// A streamed call: deltas go to the harness as they come; the end is held back until the record is durable.
import type { ServerResponse } from 'node:http';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { visibleChunk } from '../dialects/openai-chat-reply.ts';
import { arrayOf, isObject, type JsonObject, objectOf, textOf } from '../domain/json.ts';
import { finishReasonOf, ReplyAssembler, saysSomething } from '../domain/reply.ts';
import { noTokens, type Tokens } from '../domain/tokens.ts';
import { retried } from '../engines/retry.ts';
import { EventRelay } from '../http/event-relay.ts';
import type { Exchange } from './exchange.ts';

/** What is known of a reply so far. */
interface Progress {
  readonly tokens: Tokens;
  readonly assembler: ReplyAssembler;
  /** From the finish chunk on, what the harness is to see waits here. */
  readonly held: string[];
  finish: string | undefined;
  usage: JsonObject;
}

export async function streamedReply(exchange: Exchange, response: ServerResponse): Promise<void> {
  const { ctx, call } = exchange.parts;
  using relay = new EventRelay(response);
  const progress: Progress = {
    tokens: noTokens(),
    assembler: new ReplyAssembler(),
    held: [],
    finish: undefined,
    usage: {},
  };
  const { first, rest } = await retried(call.signal, () => untilFirstToken(exchange));
  exchange.firstToken();
  try {
    for (const chunk of first) ctx.engine.adapter.readChunk(chunk, progress.tokens);
    requireEarlyIds(exchange, progress.tokens);
    for (const chunk of first) await pass(exchange, progress, relay, chunk);
    for await (const chunk of rest) {
      ctx.engine.adapter.readChunk(chunk, progress.tokens);
      await pass(exchange, progress, relay, chunk);
    }
    requireWhole(exchange, progress);
  } catch (error) {
    await rest.return();
    await recordBroken(exchange, progress, error);
    throw error;
  }
  await finish(exchange, progress, relay);
}

interface Begun {
  /** Up to and with the first chunk that holds something sampled, or the end. */
  readonly first: readonly JsonObject[];
  readonly rest: AsyncGenerator<JsonObject, void>;
}

/** One try. Nothing has gone to the harness yet, so a stream that breaks here can be tried again. */
async function untilFirstToken({ parts }: Exchange): Promise<Begun> {
  const rest = parts.ctx.engine.chunks(parts.sent, parts.call.signal);
  const first: JsonObject[] = [];
  try {
    for (;;) {
      const next = await rest.next();
      if (next.done) return { first, rest };
      first.push(next.value);
      const choice = choiceOf(next.value);
      if (saysSomething(objectOf(choice['delta'])) || textOf(choice['finish_reason']) !== undefined) {
        return { first, rest };
      }
    }
  } catch (error) {
    const { reason, message } = asPolarError(error);
    if (reason !== 'ENGINE_STREAM_CUT') throw error;
    throw new PolarError('ENGINE_UNAVAILABLE', message, { cause: error, retryAfterMs: 1_000 });
  }
}

const choiceOf = (chunk: JsonObject): JsonObject => objectOf(arrayOf(chunk['choices'])[0]);

/** Take a chunk in that has been read for tokens, and let the harness see it or hold it. */
async function pass(
  exchange: Exchange,
  progress: Progress,
  relay: EventRelay,
  chunk: JsonObject,
): Promise<void> {
  const { asked, shown, call } = exchange.parts;
  const choice = choiceOf(chunk);
  progress.assembler.add(objectOf(choice['delta']));
  progress.finish ??= textOf(choice['finish_reason']);
  if (isObject(chunk['usage'])) progress.usage = chunk['usage'];
  const seen = visibleChunk(chunk, asked, shown);
  if (seen === undefined) return;
  if (progress.finish === undefined) await relay.send(JSON.stringify(seen), call.signal);
  else progress.held.push(JSON.stringify(seen));
}

/** Where ids come with the text, their absence is told before the harness has seen anything. */
function requireEarlyIds(exchange: Exchange, tokens: Tokens): void {
  if (!exchange.parts.ctx.engine.adapter.idsInEachChunk) return;
  if (tokens.promptIds === undefined) throw exchange.noTokenIds('prompt');
}

function requireWhole(exchange: Exchange, { tokens, finish }: Progress): void {
  if (finish === undefined) {
    const message = `the engine at ${exchange.parts.ctx.engine.name} ended a stream without a finish_reason`;
    throw new PolarError('ENGINE_STREAM_CUT', message);
  }
  if (tokens.promptIds === undefined) throw exchange.noTokenIds('prompt');
  if (tokens.sampledIds === undefined) throw exchange.noTokenIds('sampled');
}

async function finish(exchange: Exchange, progress: Progress, relay: EventRelay): Promise<void> {
  const { tokens, usage, held, assembler } = progress;
  const finishReason = finishReasonOf(progress.finish ?? 'stop');
  const interrupted = finishReason === 'abort' ? exchange.interrupted() : undefined;
  const reply = interrupted === undefined ? assembler.message : undefined;
  await exchange.record({ tokens, finishReason, reply, usage, error: interrupted });
  if (interrupted !== undefined) throw interrupted;
  exchange.parts.call.signal.throwIfAborted();
  relay.end(held);
}

/** What was sampled until a stream broke is recorded; where the engine has told no ids, there is nothing to record. */
async function recordBroken(exchange: Exchange, progress: Progress, error: unknown): Promise<void> {
  const { tokens, usage } = progress;
  if (tokens.promptIds === undefined) return;
  const { reason } = asPolarError(error);
  const left = reason === 'CANCELLED' || reason === 'SESSION_CLOSED';
  const finishReason = left ? 'cancelled' : 'error';
  await exchange.record({ tokens, finishReason, reply: undefined, usage, error });
}
