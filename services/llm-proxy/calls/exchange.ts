// What whole and streamed calls share: the request's side of a record, and writing it.
import { asPolarError, Boundary, PolarError, REASONS, type Reason } from '../../common/errors.ts';
import type { Attempt, Call } from '../attempts/attempt.ts';
import type { LlmProxyContext } from '../context.ts';
import type { Asked, ReplyWriter } from '../dialects/dialect.ts';
import type { Draft, GoesOn } from '../domain/attempt-state.ts';
import type { CompletionFields as Fields } from '../domain/completion.ts';
import type { Drift } from '../domain/drift.ts';
import { countOf, type JsonObject, type JsonValue } from '../domain/json.ts';
import { type Digested, digestIn, digestMessage, digestReply, digestTools } from '../domain/messages.ts';
import type { Notes } from '../domain/notes.ts';
import type { RoleFound } from '../domain/roles.ts';
import type { ToldExperts } from '../domain/routed-experts.ts';
import { samplingOf } from '../domain/sampling.ts';
import { settingsKey } from '../domain/template-settings.ts';
import {
  arePublished,
  idColumn,
  knowsPrompt,
  logprobColumn,
  policyVersionOf,
  type Sampled,
  sampledOf,
  type Tokens,
  type Weights,
} from '../domain/tokens.ts';
import { usageOf } from '../domain/usage.ts';
import type { CallOrder, EngineCall, TextCall } from '../engines/engine-call.ts';
import type { PlacedCall } from '../engines/placed-call.ts';
import { retried } from '../engines/retry.ts';
import { callHeld, callRecorded, usageDiffers } from '../events.ts';
import type { Passage } from '../policy/gate.ts';
import type { Delivery } from './delivery.ts';

export interface ExchangeParts {
  readonly ctx: LlmProxyContext;
  readonly attempt: Attempt;
  readonly call: Call;
  readonly asked: Asked;
  readonly notes: Notes;
  readonly order: CallOrder;
  readonly writer: ReplyWriter;
  readonly delivery: Delivery;
  readonly role: RoleFound;
  /** Rules that changed the request. */
  readonly normalisedBy: readonly string[];
}

interface Digests {
  readonly messages: readonly Digested[];
  readonly digests: readonly string[];
  readonly tools: Digested | undefined;
}

/** How one choice of a call ended. */
export interface Choice {
  readonly index: number;
  /** In the record's words. */
  readonly finishReason: string;
  /** The assistant message as the harness gets it; unset where it does not. */
  readonly reply: JsonValue | undefined;
}

/** How a call ended. */
export interface Ending {
  /** The try that it ended with. */
  readonly tried: PlacedCall;
  readonly choices: readonly Choice[];
  readonly usage: JsonObject;
  readonly error?: unknown;
}

/** How a call ended that broke off: `choices` are the indexes of those that are known. */
interface Broken extends Omit<Ending, 'choices'> {
  readonly choices: readonly number[];
}

/** How a reply ended that nobody was at fault for. */
const BROKEN: Partial<Record<Reason, string>> = {
  CANCELLED: 'cancelled',
  SESSION_CLOSED: 'cancelled',
  POLICY_PAUSED: 'abort',
};

export class Exchange implements Disposable {
  readonly parts: ExchangeParts;
  readonly #startMs = Date.now();
  readonly #start = performance.now();
  /** Waiting for the end of a pause, or for a place at an engine. */
  #waitedMs = 0;
  #firstToken: number | undefined;
  #tries = 0;
  #passage: Passage | undefined;
  #digests: Digests | undefined;

  readonly #order: CallOrder;

  constructor(parts: ExchangeParts) {
    this.parts = parts;
    this.#order = { ...parts.order, inTokenMode: (text) => this.#inTokenMode(text) };
  }

  #inTokenMode(text: TextCall): EngineCall {
    const { ctx, attempt, asked, notes, call } = this.parts;
    const { sessionId, attempt: number } = attempt.key;
    const goesOn = (): GoesOn | Drift => {
      const { messages, digests, tools } = this.prepare();
      const settings = settingsKey(text.sent);
      return attempt.goesOn({ messages, digests, tools: tools?.digest ?? '', settings });
    };
    const session = `${sessionId}.${number}`;
    return ctx.tokenMode.take(text, {
      callId: call.id,
      session,
      messages: asked.messages,
      tools: asked.tools,
      notes,
      goesOn,
    });
  }

  /** Do now, while the engine works, what the record needs of the request. */
  prepare(): Digests {
    if (this.#digests !== undefined) return this.#digests;
    const { asked, notes } = this.parts;
    const messages = notes.each(asked.messages, digestMessage);
    const digests = notes.each(messages, digestIn);
    const tools = asked.tools.length === 0 ? undefined : digestTools(asked.tools);
    this.#digests = { messages, digests, tools };
    return this.#digests;
  }

  /**
   * Ask engines until `work` gets through: again while they are not there, and anew after a pause that gave the call up
   * before the harness had seen anything of it. `work` gets a try and the signal that it lasts for. A passage that is
   * returned stays open until the exchange is disposed of. Where it fails for good, what was sampled is recorded.
   */
  async ask<T>(work: (tried: PlacedCall, signal: AbortSignal) => Promise<T>): Promise<T> {
    const { ctx, call, delivery } = this.parts;
    for (;;) {
      const { signal } = await this.#enter();
      let tried: PlacedCall | undefined;
      try {
        return await retried(signal, async () => {
          tried = await this.#begin(signal);
          return await work(tried, signal);
        });
      } catch (error) {
        const again = error instanceof PolarError && error.reason === 'POLICY_PAUSED' && !delivery.begun;
        if (!again) {
          await this.#recordUntold(tried, error);
          throw error;
        }
        callHeld(ctx.log, this.parts.attempt.key, call.id);
      }
    }
  }

  /** What was sampled by a try that the harness has seen nothing of. */
  async #recordUntold(tried: PlacedCall | undefined, error: unknown): Promise<void> {
    if (tried === undefined || !knowsPrompt(tried.tokens)) return;
    const sampled = [...tried.tokens.choices.keys()].filter((index) => {
      const { ids = [] } = sampledOf(tried.tokens, index);
      return ids.length > 0;
    });
    if (sampled.length > 0) await this.recordBroken({ tried, error, choices: sampled, usage: {} });
  }

  /** What was sampled of choices until they broke. */
  async recordBroken({ choices, ...ending }: Broken): Promise<void> {
    const finishReason = BROKEN[asPolarError(ending.error).reason] ?? 'error';
    await this.record({
      ...ending,
      choices: choices.map((index) => ({ index, finishReason, reply: undefined })),
    });
  }

  [Symbol.dispose](): void {
    this.#passage?.[Symbol.dispose]();
  }

  async #enter(): Promise<Passage> {
    const { ctx, call } = this.parts;
    this.#passage?.[Symbol.dispose]();
    this.#passage = undefined;
    const from = performance.now();
    this.#passage = await ctx.policies.gate.enter(call);
    this.#waitedMs += performance.now() - from;
    return this.#passage;
  }

  async #begin(signal: AbortSignal): Promise<PlacedCall> {
    const { ctx, call } = this.parts;
    this.#tries++;
    const from = performance.now();
    // What it waits for a place is none of its time: there is a limit for that.
    using _ = call.hold();
    try {
      const tried = await ctx.engines.begin(this.#order, signal);
      call.start();
      return tried;
    } finally {
      this.#waitedMs += performance.now() - from;
    }
  }

  /** The first sampled token is there. */
  firstToken(): void {
    this.#firstToken ??= performance.now();
  }

  /** Write a record for each choice, durable when it returns. A reply that the harness no longer waits for is `cancelled`. */
  async record(ending: Ending): Promise<void> {
    const { ctx, attempt, call } = this.parts;
    const { tokens } = ending.tried;
    const shared = this.#shared(ending);
    const records = ending.choices.map((choice) => this.#recordOf(choice, ending, shared));
    for (const record of await Promise.all(records.map((draft) => attempt.record(draft)))) {
      ctx.attempts.stored.add(attempt, record);
      callRecorded(ctx.log, attempt.key, record);
    }
    const told = countOf(ending.usage['completion_tokens']);
    const ids = tokens.choices.reduce((sum, sampled) => sum + (sampled?.ids?.length ?? 0), 0);
    if (tellsIds(ending.tried) && told > 0 && told !== ids)
      usageDiffers(ctx.log, attempt.key, call.id, told, ids);
  }

  #recordOf(
    choice: Choice,
    { tried, usage, error }: Ending,
    shared: Fields,
  ): Parameters<Attempt['record']>[0] {
    const { call } = this.parts;
    const sampled = sampledOf(tried.tokens, choice.index);
    const cancelled = call.signal.aborted && error === undefined;
    const lengths = Array.from(tried.tokens.choices, (one) => one?.ids?.length ?? 0);
    const counted = usageOf(usage, choice.index, lengths) ?? countOfUnknown(sampled);
    const { weights = tried.tokens } = sampled;
    return {
      ...promptOf(tried.tokens),
      sampledIds: idColumn(sampled),
      experts: expertsOf(tried, sampled),
      ...this.prepare(),
      reply: cancelled || choice.reply === undefined ? undefined : digestReply(choice.reply),
      fields: {
        ...shared,
        ...(tried.trainable ? this.#versionOf(weights) : frozenVersion(weights)),
        callId: choice.index === 0 ? call.id : `${call.id}-${choice.index}`,
        choiceIndex: choice.index,
        finishReason: cancelled ? 'cancelled' : choice.finishReason,
        ...logprobsOf(sampled),
        noTokenIds: !tellsIds(tried) || countOfUnknown(sampled) !== undefined,
        ...(counted && { usage: counted }),
      },
    };
  }

  /** What the records of all choices say alike. */
  #shared({ tried, error }: Ending): Fields {
    const { attempt, call, asked, role, normalisedBy } = this.parts;
    const { engine, model, sent } = tried;
    return {
      startSeq: call.startSeq,
      endSeq: attempt.order(),
      model,
      engine: engine.adapter.kind,
      engineUrl: engine.name,
      dialect: asked.dialect,
      mode: tried.mode,
      drift: tried.drift,
      trainable: tried.trainable,
      logprobMode: engine.adapter.features.logprobMode,
      role: role.role,
      roleRule: role.rule,
      normalisedBy: [...normalisedBy],
      sampling: samplingOf(sent),
      times: this.#times(),
      engineTries: this.#tries,
      errorReason: providerReason(error),
      ...(asked.storedFrom !== undefined && { storedFrom: asked.storedFrom }),
    };
  }

  /** The engine's word where it has one, else what was published when the call began. */
  #versionOf(weights: Weights): Fields {
    const { weightVersion, spans } = weights;
    const published = this.#passage?.version;
    if (weightVersion === '' && published !== undefined) return published;
    const named = policyVersionOf(weightVersion);
    const same = published !== undefined && arePublished(weights, published.weightVersion);
    const policyVersion = same && named === 0n ? published.policyVersion : named;
    return { policyVersion, weightVersion, policySpans: policySpansOf(spans) };
  }

  #times(): NonNullable<Fields['times']> {
    const since = (moment: number, from = this.#start): number => Math.round(moment - from);
    const now = performance.now();
    const first = this.#firstToken;
    return {
      startMs: BigInt(this.#startMs),
      queueMs: Math.round(this.#waitedMs),
      firstTokenMs: first === undefined ? 0 : since(first),
      decodeMs: first === undefined ? 0 : since(now, first),
      totalMs: since(now),
    };
  }
}

function promptOf({ given, promptIds }: Tokens): Pick<Draft, 'promptIds' | 'behind'> {
  return given === undefined
    ? { promptIds: promptIds ?? new Int32Array() }
    : { promptIds: given.tail, behind: given.behind };
}

function expertsOf({ engine, tokens }: PlacedCall, { experts: rows }: Sampled): ToldExperts | undefined {
  const { experts: shape } = engine;
  return shape && { shape, from: tokens.expertsFrom, rows };
}

/** How many ids were sampled that the engine had not told when it broke off: as many as it told logprobs. */
export const countOfUnknown = ({ ids, logprobs }: Sampled): { completionTokens: number } | undefined =>
  ids === undefined && logprobs.length > 0 ? { completionTokens: logprobs.length } : undefined;

/** A frozen model has no version of the policy. */
const frozenVersion = ({ weightVersion }: Weights): Fields => ({ weightVersion });

/** Whether the engine is of a kind that tells ids. Others' replies are recorded without, and never trained. */
export const tellsIds = ({ engine }: PlacedCall): boolean => engine.adapter.features.wholeIds;

/** Of a reply that is to be passed on. Throws ENGINE_NO_TOKEN_IDS. */
export function requireIds(tried: PlacedCall, choices: Iterable<number>): void {
  if (!tellsIds(tried)) return;
  if (!knowsPrompt(tried.tokens)) throw noTokenIds(tried, 'prompt');
  for (const index of choices) {
    if (sampledOf(tried.tokens, index).ids === undefined) throw noTokenIds(tried, 'sampled');
  }
}

/** The engine returned a reply without its ids: nothing can be trained from it, so it is not passed on. */
export function noTokenIds({ engine }: PlacedCall, what: string): PolarError {
  const message = `the engine at ${engine.name} returned no ${what} token ids: ${engine.adapter.advice}`;
  return new PolarError('ENGINE_NO_TOKEN_IDS', message);
}

/** The engine ended the reply itself before it was done, as it does for a change of weights. */
export function interrupted({ engine }: PlacedCall): PolarError {
  const message = `the engine at ${engine.name} interrupted the reply`;
  return new PolarError('ENGINE_UNAVAILABLE', message, { retryAfterMs: 1_000 });
}

const logprobsOf = (sampled: Sampled): { logprobs?: Uint8Array } => {
  const logprobs = logprobColumn(sampled);
  return logprobs === undefined ? {} : { logprobs };
};

const policySpansOf = (spans: Weights['spans']): NonNullable<Fields['policySpans']> =>
  spans.map((span) => ({ ...span, policyVersion: policyVersionOf(span.weightVersion) }));

/** Only what went wrong at the engine is said on the record. */
function providerReason(error: unknown): string {
  if (error === undefined) return '';
  const { reason } = asPolarError(error);
  return REASONS[reason].boundary === Boundary.PROVIDER ? reason : '';
}
