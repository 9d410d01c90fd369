// The openai-chat dialect: what a harness gets to see of a reply.
import { alikeOf, type Form } from '../../domain/alike-chunks.ts';
import { arrayOf, countOf, isObject, type JsonObject, type JsonValue, objectOf } from '../../domain/json.ts';
import { DONE, eventOf, lineOf, onOneLine } from '../../domain/sse.ts';
import type { ReplyWriter, StreamWriter } from '../dialect.ts';
import { CallStream, type Declared, showCalls } from './tool-calls.ts';

/** What a harness asked to see, and how. */
export interface Wants {
  readonly logprobs: boolean;
  /** Likeliest tokens beside each logprob; unset: none. */
  readonly topLogprobs?: number;
  /** A chunk with usage at the end of a stream. */
  readonly usage: boolean;
  /** Unset: all tools are functions. */
  readonly declared?: Declared | undefined;
}

/** What engines add for the proxy. */
const REPLY_EXTRAS = new Set([
  'prompt_token_ids',
  'prompt_logprobs',
  'prompt_text',
  'kv_transfer_params',
  'ec_transfer_params',
  'timings',
  'metrics',
  'metadata',
  'sglext',
]);
const CHOICE_EXTRAS = new Set([
  'token_ids',
  'response_token_ids',
  'prompt_token_ids',
  'input_token_ids',
  'meta_info',
  'routed_experts',
  'stop_reason',
  'matched_stop',
]);

export const chatWriter = (wants: Wants, shown: string): ReplyWriter => ({
  whole: (reply) => wholeReply(reply, wants, shown),
  stream: () => chatStream(wants, shown),
});

function wholeReply(reply: JsonObject, wants: Wants, shown: string): JsonObject {
  const seen = visible(reply, wants, shown);
  for (const choice of arrayOf(seen['choices']).filter(isObject)) {
    if (isObject(choice['message'])) choice['message'] = told(choice['message']);
    if (wants.declared !== undefined) showCalls(choice, wants.declared);
  }
  return seen;
}

/** A whole message as its stream would tell it: with a content and a refusal, and of the rest what says something. */
function told({ role, content, refusal, ...rest }: JsonObject): JsonObject {
  const message: JsonObject = {
    role: role ?? 'assistant',
    // A stream says nothing where there is no text.
    content: content === '' ? null : (content ?? null),
    refusal: refusal ?? null,
  };
  for (const key in rest) {
    const value = rest[key] ?? null;
    const silent = Array.isArray(value) && value.length === 0;
    if (value !== null && !silent) message[nameOf(key)] ??= value;
  }
  return message;
}

function chatStream(wants: Wants, shown: string): StreamWriter {
  const streams = new Map<number, CallStream>();
  const rewrite = (chunk: JsonObject, declared: Declared): void => {
    for (const choice of arrayOf(chunk['choices']).filter(isObject)) {
      const index = countOf(choice['index']);
      const stream = streams.get(index) ?? new CallStream(declared);
      streams.set(index, stream);
      stream.show(choice);
    }
  };
  const event = (chunk: JsonObject): string => {
    const seen = visibleChunk(chunk, wants, shown);
    if (seen === undefined) return '';
    if (wants.declared !== undefined) rewrite(seen, wants.declared);
    return eventOf(lineOf(seen));
  };
  const known = new KnownEvent(event);
  const plain = wants.declared === undefined && !wants.logprobs;
  return {
    contentType: 'text/event-stream; charset=utf-8',
    keepAlive: () => ': keep-alive\n\n',
    chunk: (chunk) => (plain ? known.of(chunk) : undefined) ?? event(chunk),
    end: () => eventOf(DONE),
    // Clients take an error object for the end of the reply, or fail for good; a broken connection they try again.
    failed: () => undefined,
  };
}

/** Stands for what is said; written with an escape, which nothing else in an event need be. */
const MARK = '\u0007';

/** The event for chunks that are alike, made once. */
class KnownEvent {
  readonly #event: (chunk: JsonObject) => string;
  #form: Form | undefined;
  /** Around what is said; unset: it does not stand there as it is. */
  #around: readonly string[] | undefined;

  constructor(event: (chunk: JsonObject) => string) {
    this.#event = event;
  }

  of(chunk: JsonObject): string | undefined {
    const alike = alikeOf(chunk);
    if (alike === undefined) return undefined;
    if (alike.form !== this.#form) {
      this.#form = alike.form;
      const around = this.#event(alike.form.saying(MARK)).split(lineOf(MARK));
      this.#around = around.length === 2 ? around : undefined;
    }
    if (this.#around === undefined) return undefined;
    return `${this.#around[0]}${onOneLine(alike.json)}${this.#around[1]}`;
  }
}

/** The chunk as the harness sees it; undefined where nothing is left of it. */
export function visibleChunk(chunk: JsonObject, wants: Wants, shown: string): JsonObject | undefined {
  const seen = visible(chunk, wants, shown);
  if (!wants.usage) delete seen['usage'];
  const empty = arrayOf(seen['choices']).length === 0;
  return empty && !isObject(seen['usage']) ? undefined : seen;
}

/** The model that was asked for, and nothing that was not asked for. Copies: taking away is slower. */
function visible(reply: JsonObject, wants: Wants, shown: string): JsonObject {
  const seen: JsonObject = {};
  for (const key in reply) {
    if (REPLY_EXTRAS.has(key)) continue;
    const value = reply[key] ?? null;
    if (key === 'choices') seen[key] = arrayOf(value).map((choice) => visibleChoice(choice, wants));
    else seen[key] = key === 'model' ? shown : value;
  }
  return seen;
}

function visibleChoice(choice: JsonValue, wants: Wants): JsonValue {
  if (!isObject(choice)) return choice;
  const seen: JsonObject = {};
  for (const key in choice) {
    if (CHOICE_EXTRAS.has(key)) continue;
    const value = choice[key] ?? null;
    if (key === 'delta' && isObject(value)) seen[key] = visibleDelta(value);
    else seen[key] = key === 'logprobs' ? shownLogprobs(value, wants) : value;
  }
  return seen;
}

/** With no more of the likeliest tokens than were asked for: some engines tell one with each logprob in any case. */
function shownLogprobs(told: JsonValue, { logprobs, topLogprobs: most = 0 }: Wants): JsonValue {
  const content = isObject(told) ? told['content'] : undefined;
  if (!logprobs) return null;
  if (!isObject(told) || !Array.isArray(content)) return told;
  const entries = content.map((entry) => {
    const top = isObject(entry) ? arrayOf(entry['top_logprobs']) : [];
    return top.length > most ? { ...objectOf(entry), top_logprobs: top.slice(0, most) } : entry;
  });
  return { ...told, content: entries };
}

/** Without what says nothing: some engines send all members with each delta. */
function visibleDelta(delta: JsonObject): JsonObject {
  const seen: JsonObject = {};
  for (const key in delta) {
    const value = delta[key] ?? null;
    if (value !== null && value !== '') seen[nameOf(key)] ??= value;
  }
  return seen;
}

/** Reasoning goes by the name that harnesses read. */
const nameOf = (key: string): string => (key === 'reasoning' ? 'reasoning_content' : key);
