// The anthropic-messages dialect: a reply as events. Blocks open and close one after the other, as the engine goes from
// thinking to text to calls.
import { PolarError } from '../../../common/errors.ts';
import { arrayOf, countOf, isObject, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import { lineOf } from '../../domain/sse.ts';
import { statusOf } from '../../http/status.ts';
import type { StreamWriter } from '../dialect.ts';
import { reasoningIn, textIn } from '../said.ts';
import { sealReasoning } from '../sealed-reasoning.ts';
import { errorBody } from './errors.ts';
import { emptyMessage, messageId, stopOf, toolUse, usageOf, type View } from './message.ts';

/** A block that has begun. */
interface Block {
  readonly kind: 'thinking' | 'text' | 'call';
  readonly index: number;
  /** Of a call: its number at the engine. */
  readonly call: number;
}

export class MessageStream implements StreamWriter {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly #view: View;
  #id: string | undefined;
  #blocks = 0;
  #calls = 0;
  #open: Block | undefined;
  #thinking = '';
  #choice: JsonObject = {};
  #usage: JsonObject = {};

  constructor(view: View) {
    this.#view = view;
  }

  keepAlive(): string {
    return event({ type: 'ping' });
  }

  chunk(chunk: JsonObject): string {
    let events = this.#start(chunk);
    if (isObject(chunk['usage'])) this.#usage = chunk['usage'];
    for (const choice of arrayOf(chunk['choices']).filter(isObject)) {
      events += this.#delta(objectOf(choice['delta']));
      if (textOf(choice['finish_reason']) !== undefined) this.#choice = choice;
    }
    return events;
  }

  end(): string {
    const delta = stopOf(this.#choice, this.#calls, this.#view.stops);
    return (
      this.#start({}) +
      this.#close() +
      event({ type: 'message_delta', delta, usage: usageOf(this.#usage) }) +
      event({ type: 'message_stop' })
    );
  }

  failed(error: PolarError): string {
    return event(errorBody(error, statusOf(error)));
  }

  /** The prompt's length is told where the engine has told its ids by then, and in any case at the end. */
  #start(chunk: JsonObject): string {
    if (this.#id !== undefined) return '';
    this.#id = messageId(chunk);
    this.#usage = { prompt_tokens: arrayOf(chunk['prompt_token_ids']).length };
    const message = { ...emptyMessage(this.#id, this.#view.shown), usage: usageOf(this.#usage) };
    return event({ type: 'message_start', message });
  }

  #delta(delta: JsonObject): string {
    let events = '';
    const thinking = reasoningIn(delta);
    if (thinking !== '') events += this.#think(thinking);
    const text = textIn(delta);
    if (text !== undefined) events += this.#enter('text') + this.#piece({ type: 'text_delta', text });
    for (const call of arrayOf(delta['tool_calls']).filter(isObject)) events += this.#call(call);
    return events;
  }

  #think(thinking: string): string {
    const entered = this.#enter('thinking');
    this.#thinking += thinking;
    return this.#view.showsThinking ? entered + this.#piece({ type: 'thinking_delta', thinking }) : entered;
  }

  #call(call: JsonObject): string {
    const number = countOf(call['index']);
    const events =
      this.#open?.kind === 'call' && this.#open.call === number ? '' : this.#enterCall(number, call);
    // As the engine sent it: escapes and spaces too.
    const json = textOf(objectOf(call['function'])['arguments']);
    return json === undefined
      ? events
      : events + this.#piece({ type: 'input_json_delta', partial_json: json });
  }

  #enterCall(number: number, call: JsonObject): string {
    if (number < this.#calls)
      throw new PolarError('ENGINE_ERROR', 'the engine went back to a tool call that it had left');
    const block = toolUse(this.#id ?? '', number, call);
    const events = this.#begin({ kind: 'call', index: this.#blocks, call: number }, block);
    this.#calls = number + 1;
    return events;
  }

  #enter(kind: 'thinking' | 'text'): string {
    if (this.#open?.kind === kind) return '';
    const block = kind === 'text' ? { type: kind, text: '' } : { type: kind, thinking: '', signature: '' };
    return this.#begin({ kind, index: this.#blocks, call: -1 }, block);
  }

  #begin(open: Block, block: JsonObject): string {
    const closed = this.#close();
    this.#open = open;
    this.#blocks++;
    return closed + event({ type: 'content_block_start', index: open.index, content_block: block });
  }

  #close(): string {
    const open = this.#open;
    if (open === undefined) return '';
    let events = '';
    if (open.kind === 'thinking') {
      events = this.#piece({ type: 'signature_delta', signature: sealReasoning(this.#thinking) });
      this.#thinking = '';
    }
    this.#open = undefined;
    return events + event({ type: 'content_block_stop', index: open.index });
  }

  #piece(delta: JsonObject): string {
    return event({ type: 'content_block_delta', index: this.#open?.index ?? 0, delta });
  }
}

const event = (data: JsonObject): string => `event: ${String(data['type'])}\ndata: ${lineOf(data)}\n\n`;
