// The openai-responses dialect: the items of a reply, and the events that tell how each of them grows.
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { InputReader } from '../custom-tools.ts';
import { sealReasoning } from '../sealed-reasoning.ts';
import type { Declared } from './tools.ts';

/** An event without its number. */
export type Event = JsonObject & { readonly type: string };

/** Where an item stands in the reply. */
export interface Place {
  readonly id: string;
  readonly index: number;
}

/** The id of an item: its kind, the reply that it is of, and which of its kind it is there. */
export const itemId = (prefix: string, reply: string, number: number): string =>
  `${prefix}_${reply}_${number}`;

/** The id of a reply's tool call to which its engine gave none. */
export const callIdOf = (reply: string, number: number): string => `call_${reply}_${number}`;

/** The reply that an item was of; undefined: its id was not written here. */
export const replyOf = (id: JsonValue | undefined): string | undefined =>
  typeof id === 'string' ? /^(?:rs|msg|fc|ctc)_(.+)_\d+$/.exec(id)?.[1] : undefined;

/** An item of a reply, piece by piece. */
export interface OutputItem {
  /** As it is now. */
  item(status: string): JsonObject;
  begin(): Event[];
  add(piece: string): Event[];
  end(status: string): Event[];
}

/** The events around the item itself; `inner` are those of its parts. */
abstract class Item implements OutputItem {
  protected readonly place: Place;

  constructor(place: Place) {
    this.place = place;
  }

  abstract item(status: string): JsonObject;
  abstract add(piece: string): Event[];
  protected abstract inner(moment: 'begin' | 'end'): Event[];

  begin(): Event[] {
    const added = this.item('in_progress');
    return [this.whole('response.output_item.added', added), ...this.inner('begin')];
  }

  end(status: string): Event[] {
    const inner = this.inner('end');
    return [...inner, this.whole('response.output_item.done', this.item(status))];
  }

  /** An event of a part. */
  protected event(type: string, more: JsonObject): Event {
    return { type, item_id: this.place.id, output_index: this.place.index, ...more };
  }

  private whole(type: string, item: JsonObject): Event {
    return { type, output_index: this.place.index, item };
  }
}

export class MessageItem extends Item {
  #text = '';
  #begun = false;

  item(status: string): JsonObject {
    const content = this.#begun ? [this.#part()] : [];
    return { id: this.place.id, type: 'message', status, role: 'assistant', content };
  }

  add(piece: string): Event[] {
    this.#text += piece;
    return [this.event('response.output_text.delta', { content_index: 0, delta: piece, logprobs: [] })];
  }

  protected inner(moment: 'begin' | 'end'): Event[] {
    this.#begun = true;
    const part = { content_index: 0, part: this.#part() };
    if (moment === 'begin') return [this.event('response.content_part.added', part)];
    return [
      this.event('response.output_text.done', { content_index: 0, text: this.#text, logprobs: [] }),
      this.event('response.content_part.done', part),
    ];
  }

  #part(): JsonObject {
    return { type: 'output_text', text: this.#text, annotations: [], logprobs: [] };
  }
}

/** How reasoning is shown. */
export interface ReasoningForm {
  /** As the summary that was asked for; otherwise as the reasoning's own text. */
  readonly summary: boolean;
  /** With `encrypted_content`. */
  readonly sealed: boolean;
}

export class ReasoningItem extends Item {
  readonly #form: ReasoningForm;
  #text = '';
  #begun = false;

  constructor(place: Place, form: ReasoningForm) {
    super(place);
    this.#form = form;
  }

  item(status: string): JsonObject {
    const { summary, sealed } = this.#form;
    const parts = this.#begun ? [this.#part()] : [];
    return {
      id: this.place.id,
      type: 'reasoning',
      summary: summary ? parts : [],
      ...(!summary && { content: parts }),
      ...(sealed && { encrypted_content: status === 'in_progress' ? '' : sealReasoning(this.#text) }),
      status,
    };
  }

  add(piece: string): Event[] {
    this.#text += piece;
    return [this.#event('text.delta', { delta: piece })];
  }

  protected inner(moment: 'begin' | 'end'): Event[] {
    this.#begun = true;
    const part = { part: this.#part() };
    if (moment === 'begin') return [this.#event('part.added', part)];
    return [this.#event('text.done', { text: this.#text }), this.#event('part.done', part)];
  }

  #part(): JsonObject {
    return { type: this.#form.summary ? 'summary_text' : 'reasoning_text', text: this.#text };
  }

  #event(name: string, more: JsonObject): Event {
    if (this.#form.summary) {
      return this.event(`response.reasoning_summary_${name}`, { summary_index: 0, ...more });
    }
    const kind = name.startsWith('part') ? 'content' : 'reasoning';
    return this.event(`response.${kind}_${name}`, { content_index: 0, ...more });
  }
}

/** A call's name and id, as the harness knows them. */
interface Called {
  readonly callId: string;
  readonly declared: Declared;
}

const calledOf = ({ callId, declared }: Called): JsonObject => ({
  call_id: callId,
  name: declared.name,
  ...(declared.namespace !== undefined && { namespace: declared.namespace }),
});

export class FunctionCallItem extends Item {
  readonly #called: Called;
  #args = '';

  constructor(place: Place, called: Called) {
    super(place);
    this.#called = called;
  }

  item(status: string): JsonObject {
    const { id } = this.place;
    return { id, type: 'function_call', status, arguments: this.#args, ...calledOf(this.#called) };
  }

  add(piece: string): Event[] {
    this.#args += piece;
    return [this.event('response.function_call_arguments.delta', { delta: piece })];
  }

  protected inner(moment: 'begin' | 'end'): Event[] {
    if (moment === 'begin') return [];
    const { name } = this.#called.declared;
    return [this.event('response.function_call_arguments.done', { arguments: this.#args, name })];
  }
}

export class CustomCallItem extends Item {
  readonly #called: Called;
  readonly #reader = new InputReader();
  #input = '';

  constructor(place: Place, called: Called) {
    super(place);
    this.#called = called;
  }

  item(status: string): JsonObject {
    const { id } = this.place;
    return { id, type: 'custom_tool_call', status, input: this.#input, ...calledOf(this.#called) };
  }

  add(piece: string): Event[] {
    return this.#added(this.#reader.push(piece));
  }

  protected inner(moment: 'begin' | 'end'): Event[] {
    if (moment === 'begin') return [];
    const rest = this.#added(this.#reader.end());
    return [...rest, this.event('response.custom_tool_call_input.done', { input: this.#input })];
  }

  #added(delta: string): Event[] {
    if (delta === '') return [];
    this.#input += delta;
    return [this.event('response.custom_tool_call_input.delta', { delta })];
  }
}
