// The openai-responses dialect: a reply that grows by the deltas of openai-chat, whole and streamed alike.
import { arrayOf, countOf, isObject, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import { reasoningIn, textIn } from '../said.ts';
import {
  CustomCallItem,
  callIdOf,
  type Event,
  FunctionCallItem,
  itemId,
  MessageItem,
  type OutputItem,
  type Place,
  ReasoningItem,
} from './output.ts';
import type { Declared } from './tools.ts';

/** What the writer of a reply knows of its request. */
export interface Wants {
  /** What the reply repeats of the request. */
  readonly echo: JsonObject;
  /** Tools by the names that the engine knows. */
  readonly declared: ReadonlyMap<string, Declared>;
  /** Reasoning is told as its summary. */
  readonly summary: boolean;
  /** Reasoning comes with its `encrypted_content`. */
  readonly sealed: boolean;
}

/** Why a reply is incomplete, by finish reason. */
const INCOMPLETE: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

export class ResponseBuilder {
  readonly #wants: Wants;
  readonly #shown: string;
  readonly #items: OutputItem[] = [];
  readonly #calls = new Map<number, OutputItem>();
  readonly #ended = new Set<OutputItem>();
  readonly #numbers = { rs: 0, msg: 0 };
  /** The reasoning or text that is being said. */
  #said: { readonly prefix: 'rs' | 'msg'; readonly item: OutputItem } | undefined;
  #id: string;
  #createdAt = 0;
  #finish: string | undefined;
  #usage: JsonObject | null = null;

  /** `id`: by which the reply can be named later; empty: the engine's. */
  constructor(wants: Wants, shown: string, id = '') {
    this.#wants = wants;
    this.#shown = shown;
    this.#id = id;
  }

  /** Id, time and usage, from a chunk or a whole reply. */
  meet({ id, created, usage }: JsonObject): void {
    if (this.#id === '') this.#id = (textOf(id) ?? '').replace(/^chatcmpl-/, '');
    this.#createdAt ||= countOf(created);
    if (isObject(usage)) this.#usage = usageOf(usage);
  }

  /** A delta, or a whole message. */
  add(delta: JsonObject): Event[] {
    const events: Event[] = [];
    const reasoning = reasoningIn(delta);
    if (reasoning !== '') this.#say('rs', reasoning, events);
    const content = textIn(delta);
    if (content !== undefined) this.#say('msg', content, events);
    for (const [i, call] of arrayOf(delta['tool_calls']).entries()) {
      if (isObject(call)) this.#addCall(countOf(call['index'] ?? i), call, events);
    }
    return events;
  }

  /** The reply is over: its last item is not whole where it was cut short. */
  end(finish: string): Event[] {
    if (this.#finish !== undefined) return [];
    this.#finish = finish;
    const last = this.#items.length - 1;
    const cut = INCOMPLETE[finish] !== undefined;
    return this.#items.flatMap((item, i) => this.#end(item, cut && i === last ? 'incomplete' : 'completed'));
  }

  /** The response so far, or as it ended. */
  response(error: JsonObject | null = null): JsonObject {
    const reason = INCOMPLETE[this.#finish ?? ''];
    const ended = reason === undefined ? 'completed' : 'incomplete';
    const status = error !== null ? 'failed' : this.#finish === undefined ? 'in_progress' : ended;
    return {
      id: `resp_${this.#id}`,
      object: 'response',
      created_at: this.#createdAt,
      status,
      background: false,
      error,
      incomplete_details: reason === undefined ? null : { reason },
      model: this.#shown,
      output: this.#output(),
      usage: this.#usage,
      ...this.#wants.echo,
    };
  }

  #output(): JsonObject[] {
    const cut = this.#finish === undefined || INCOMPLETE[this.#finish] !== undefined;
    const last = this.#items.length - 1;
    return this.#items.map((item, i) => item.item(cut && i === last ? 'incomplete' : 'completed'));
  }

  /** More of what is being said; of the other kind, or behind a call, it is an item of its own. */
  #say(prefix: 'rs' | 'msg', piece: string, events: Event[]): void {
    if (this.#said?.prefix !== prefix) {
      const make = (place: Place) =>
        prefix === 'rs' ? new ReasoningItem(place, this.#wants) : new MessageItem(place);
      const item = this.#open(make, { prefix, number: this.#numbers[prefix]++ }, events);
      this.#said = { prefix, item };
    }
    events.push(...this.#said.item.add(piece));
  }

  #addCall(index: number, call: JsonObject, events: Event[]): void {
    const { name, arguments: args } = objectOf(call['function']);
    let item = this.#calls.get(index);
    if (item === undefined) {
      const flat = textOf(name) ?? '';
      const declared = this.#wants.declared.get(flat) ?? { name: flat, custom: false };
      const number = this.#calls.size;
      const callId = textOf(call['id']) ?? callIdOf(this.#id, number);
      const Kind = declared.custom ? CustomCallItem : FunctionCallItem;
      const prefix = declared.custom ? 'ctc' : 'fc';
      item = this.#open((place) => new Kind(place, { callId, declared }), { prefix, number }, events);
      this.#calls.set(index, item);
    }
    const piece = textOf(args);
    if (piece !== undefined) events.push(...item.add(piece));
  }

  /** What is being said ends first: many clients take an event for the item that began last. Calls wait for the record. */
  #open(
    make: (place: Place) => OutputItem,
    { prefix, number }: { prefix: string; number: number },
    events: Event[],
  ): OutputItem {
    if (this.#said !== undefined) events.push(...this.#end(this.#said.item, 'completed'));
    this.#said = undefined;
    const index = this.#items.length;
    const item = make({ id: itemId(prefix, this.#id, number), index });
    this.#items.push(item);
    events.push(...item.begin());
    return item;
  }

  /** Once. */
  #end(item: OutputItem, status: string): Event[] {
    if (this.#ended.has(item)) return [];
    this.#ended.add(item);
    return item.end(status);
  }
}

function usageOf(usage: JsonObject): JsonObject {
  const input = countOf(usage['prompt_tokens']);
  const output = countOf(usage['completion_tokens']);
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: countOf(objectOf(usage['prompt_tokens_details'])['cached_tokens']),
      cache_write_tokens: 0,
    },
    output_tokens: output,
    output_tokens_details: {
      reasoning_tokens: countOf(objectOf(usage['completion_tokens_details'])['reasoning_tokens']),
    },
    total_tokens: input + output,
  };
}
