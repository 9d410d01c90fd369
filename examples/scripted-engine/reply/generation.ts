// What is generated for one choice: ids, logprobs and what each token adds to the message, all known beforehand.

import { Buffer } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';
import { otherwiseSplit } from '../tokenizer/split.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import { type Delta, type ParserOptions, ReplyParser } from './parser.ts';

export interface Step {
  readonly id: number;
  readonly delta: Delta;
}

export interface Message {
  readonly reasoning: string;
  readonly content: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
}

export interface Generation {
  readonly steps: readonly Step[];
  /** What comes after the last token. */
  readonly rest: Delta;
  readonly message: Message;
  readonly finish: 'stop' | 'length' | 'tool_calls';
  /** The token or string that ended it. */
  readonly matched: number | string | null;
}

export interface GenerationLimits {
  readonly tokensMax: number;
  readonly stop: readonly string[];
  /** Sampled in other tokens than encoding gives. */
  readonly splits?: boolean;
}

/** `text` without its end token. */
export function generate(
  tokenizer: Tokenizer,
  text: string,
  limits: GenerationLimits,
  options: ParserOptions,
): Generation {
  const endToken = tokenizer.idOf('<|im_end|>');
  const encoded = tokenizer.encode(text);
  const sampled = limits.splits === true ? otherwiseSplit(tokenizer, encoded) : encoded;
  const ids = [...sampled, endToken].slice(0, limits.tokensMax);
  return parsed(tokenizer, ids, limits.stop, options);
}

function parsed(
  tokenizer: Tokenizer,
  ids: readonly number[],
  stops: readonly string[],
  options: ParserOptions,
): Generation {
  const endToken = tokenizer.idOf('<|im_end|>');
  const pieces = visiblePieces(tokenizer, ids);
  const stop = findStop(pieces, stops);
  if (stop !== undefined) cutPieces(pieces, stop);
  const parser = new ReplyParser(options);
  const steps = pieces.map((piece, i) => ({ id: ids[i] as number, delta: parser.feed(piece) }));
  const rest = parser.flush();
  const message = fold([...steps.map(({ delta }) => delta), rest], parser);
  const matched = stop?.text ?? (ids.at(-1) === endToken ? endToken : null);
  const natural = message.calls.length > 0 ? 'tool_calls' : 'stop';
  return { steps, rest, message, finish: matched === null ? 'length' : natural, matched };
}

/** The message of ids which all are text, special tokens too. */
export function messageOf(tokenizer: Tokenizer, ids: readonly number[], options: ParserOptions): Message {
  const decoder = new StringDecoder('utf8');
  const parser = new ReplyParser(options);
  const deltas = ids.map((id) => parser.feed(decoder.write(Buffer.from(tokenizer.bytesOf(id)))));
  return fold([...deltas, parser.flush()], parser);
}

/** The text that each token makes visible; a character that is not complete waits. */
function visiblePieces(tokenizer: Tokenizer, ids: readonly number[]): string[] {
  const decoder = new StringDecoder('utf8');
  return ids.map((id) => (tokenizer.isSpecial(id) ? '' : decoder.write(Buffer.from(tokenizer.bytesOf(id)))));
}

interface Stop {
  readonly text: string;
  /** Where it begins. */
  readonly at: number;
}

function findStop(pieces: readonly string[], stops: readonly string[]): Stop | undefined {
  const whole = pieces.join('');
  const found = stops
    .map((text) => ({ text, at: text === '' ? -1 : whole.indexOf(text) }))
    .filter(({ at }) => at >= 0);
  return found.sort((a, b) => a.at + a.text.length - (b.at + b.text.length))[0];
}

/** Generation ends with the token that completes the stop string; the text ends before that string. */
function cutPieces(pieces: string[], stop: Stop): void {
  let end = 0;
  for (let i = 0; i < pieces.length; i++) {
    const start = end;
    end += (pieces[i] as string).length;
    if (end > stop.at) pieces[i] = (pieces[i] as string).slice(0, Math.max(0, stop.at - start));
    if (end >= stop.at + stop.text.length) pieces.length = i + 1;
  }
}

function fold(deltas: readonly Delta[], parser: ReplyParser): Message {
  let reasoning = '';
  let content = '';
  const calls: { name: string; arguments: string }[] = [];
  for (const delta of deltas) {
    reasoning += delta.reasoning;
    content += delta.content;
    for (const { index, name, arguments: text } of delta.calls) {
      const call = calls[index];
      if (call !== undefined) call.arguments += text;
      else calls.push({ name: name ?? '', arguments: text });
    }
  }
  // A call that was cut is text in a whole reply; only a stream has shown its beginning as a call.
  return { reasoning, content: content + parser.openCall, calls: calls.slice(0, parser.completeCalls) };
}
