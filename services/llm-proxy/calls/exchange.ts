// What whole and streamed calls share: the request's side of a record, and writing it.

import { asPolarError, Boundary, PolarError, REASONS } from '../../common/errors.ts';
import type { Attempt, Call } from '../attempts/attempt.ts';
import type { LlmProxyContext } from '../context.ts';
import type { ChatRequest } from '../dialects/openai-chat.ts';
import { countOf, type JsonObject, type JsonValue, objectOf } from '../domain/json.ts';
import { type Digested, digestMessage, digestTools } from '../domain/messages.ts';
import { samplingOf } from '../domain/sampling.ts';
import { logprobColumn, policyVersionOf, type Tokens } from '../domain/tokens.ts';
import { callRecorded, usageDiffers } from '../events.ts';

export interface ExchangeParts {
  readonly ctx: LlmProxyContext;
  readonly attempt: Attempt;
  readonly call: Call;
  readonly asked: ChatRequest;
  /** The body for the engine. */
  readonly sent: JsonObject;
  /** The model name that the harness sees. */
  readonly shown: string;
}

interface Digests {
  readonly messages: readonly Digested[];
  readonly tools: Digested | undefined;
}

/** How a call ended. */
export interface Ending {
  readonly tokens: Tokens;
  /** In the record's words. */
  readonly finishReason: string;
  /** The assistant message as the harness gets it; unset where it does not. */
  readonly reply: JsonValue | undefined;
  readonly usage: JsonObject;
  readonly error?: unknown;
}

export class Exchange {
  readonly parts: ExchangeParts;
  readonly #startMs = Date.now();
  readonly #start = performance.now();
  #firstToken: number | undefined;
  #digests: Digests | undefined;

  constructor(parts: ExchangeParts) {
    this.parts = parts;
  }

  /** Do now, while the engine works, what the record needs of the request. */
  prepare(): Digests {
    const { messages, tools } = this.parts.asked;
    this.#digests ??= {
      messages: messages.map(digestMessage),
      tools: tools.length === 0 ? undefined : digestTools([...tools]),
    };
    return this.#digests;
  }

  /** The first sampled token is there. */
  firstToken(): void {
    this.#firstToken ??= performance.now();
  }

  /** Write the record, durable when it returns. A reply that the harness no longer waits for is `cancelled`. */
  async record(ending: Ending): Promise<void> {
    const { ctx, attempt, call, sent } = this.parts;
    const { tokens, usage } = ending;
    const cancelled = call.signal.aborted && ending.error === undefined;
    const reply = cancelled || ending.reply === undefined ? undefined : digestMessage(ending.reply);
    const record = await attempt.record({
      promptIds: tokens.promptIds ?? new Int32Array(),
      sampledIds: Int32Array.from(tokens.sampledIds ?? []),
      ...this.prepare(),
      reply,
      fields: {
        callId: call.id,
        startSeq: call.startSeq,
        endSeq: attempt.order(),
        finishReason: cancelled ? 'cancelled' : ending.finishReason,
        model: String(sent['model']),
        engine: ctx.engine.adapter.kind,
        trainable: true,
        role: 'main',
        policyVersion: policyVersionOf(tokens.weightVersion),
        weightVersion: tokens.weightVersion,
        sampling: samplingOf(sent),
        usage: usageOf(usage),
        times: this.#times(),
        errorReason: providerReason(ending.error),
        ...logprobsOf(tokens),
      },
    });
    callRecorded(ctx.log, attempt.key, record);
    const told = countOf(usage['completion_tokens']);
    const ids = tokens.sampledIds?.length ?? 0;
    if (told > 0 && told !== ids) usageDiffers(ctx.log, attempt.key, call.id, told, ids);
  }

  #times(): { startMs: bigint; firstTokenMs: number; totalMs: number } {
    const since = (moment: number): number => Math.round(moment - this.#start);
    return {
      startMs: BigInt(this.#startMs),
      firstTokenMs: this.#firstToken === undefined ? 0 : since(this.#firstToken),
      totalMs: since(performance.now()),
    };
  }

  /** The engine returned a reply without its ids: nothing can be trained from it, so it is not passed on. */
  noTokenIds(what: string): PolarError {
    const { name, adapter } = this.parts.ctx.engine;
    return new PolarError(
      'ENGINE_NO_TOKEN_IDS',
      `the engine at ${name} returned no ${what} token ids: ${adapter.advice}`,
    );
  }

  /** The engine ended the reply itself before it was done, as it does for a change of weights. */
  interrupted(): PolarError {
    const message = `the engine at ${this.parts.ctx.engine.name} interrupted the reply`;
    return new PolarError('ENGINE_UNAVAILABLE', message, { retryAfterMs: 1_000 });
  }
}

const logprobsOf = (tokens: Tokens): { logprobs?: Uint8Array } => {
  const logprobs = logprobColumn(tokens);
  return logprobs === undefined ? {} : { logprobs };
};

function usageOf(usage: JsonObject): {
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
} {
  return {
    promptTokens: countOf(usage['prompt_tokens']),
    completionTokens: countOf(usage['completion_tokens']),
    cachedTokens: countOf(objectOf(usage['prompt_tokens_details'])['cached_tokens']),
  };
}

/** Only what went wrong at the engine is said on the record. */
function providerReason(error: unknown): string {
  if (error === undefined) return '';
  const { reason } = asPolarError(error);
  return REASONS[reason].boundary === Boundary.PROVIDER ? reason : '';
}
