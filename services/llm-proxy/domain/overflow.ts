// How engines say that a prompt is too long for the model.
import type { PolarError } from '../../common/errors.ts';

const WORDS =
  /context[ _](length|window|size)|maximum context|prompt is too long|longer than the (maximum )?model/i;

/** Whether the engine refused a call because its prompt does not fit. */
export const isOverflow = (error: PolarError): boolean =>
  error.reason === 'ENGINE_REFUSED' && WORDS.test(error.message);

/** Numbers of tokens in what an engine said: of the prompt, asked for in reply, and that fit together. */
export interface OverflowSizes {
  readonly prompt: number | undefined;
  readonly reply: number | undefined;
  readonly most: number | undefined;
}

const PROMPT = new RegExp(
  [
    '(?<!upper bound for \\d*)(\\d+) (?:input tokens|tokens from the input|in the messages)',
    'Input length \\((\\d+)\\)',
    '(?:input|request) \\((\\d+) tokens\\)',
    'prompt \\(length (\\d+)\\)',
    'messages resulted in (\\d+) tokens',
  ].join('|'),
);
const REPLY =
  /requested (\d+) output tokens|(\d+) (?:tokens for|in) the completion|_tokens' is too large: (\d+)/;
const MOST =
  /context length (?:is|of) (\d+)|context (?:length|size) \((\d+)(?: tokens)?\)|maximum model length of (\d+)/;

export const overflowSizes = (message: string): OverflowSizes => ({
  prompt: numberIn(PROMPT, message),
  reply: numberIn(REPLY, message),
  most: numberIn(MOST, message),
});

function numberIn(pattern: RegExp, message: string): number | undefined {
  const found = pattern
    .exec(message)
    ?.slice(1)
    .find((digits) => digits !== undefined);
  return found === undefined ? undefined : Number(found);
}
