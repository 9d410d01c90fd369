// A judge: a model behind OpenAI's chat API that the topology names. Its key is in the header of a request and nowhere else.
import { z } from 'zod';
import { apiPath } from '../../common/api-path.ts';
import { Deadline } from '../../common/clock.ts';
import { PolarError, type PolarErrorOptions, type Reason } from '../../common/errors.ts';
import { retryAfterMs } from '../../common/retry-after.ts';
import type { PromptMessage } from '../domain/judge-prompt.ts';

/** What of a judge's answer is read; above: JUDGE_UNAVAILABLE. */
const ANSWER_BYTES_MAX = 1024 * 1024;
/** It does not take the question: too long for its model, or a parameter that it does not know. */
const REFUSED: readonly number[] = [400, 413, 422];
const TOO_MANY_REQUESTS = 429;
/** Where it says of too many requests alone that there are. */
const WAIT_MS = 1_000;

export interface Judge {
  readonly name: string;
  /** With or without /v1 at its end; with another version as it is. */
  readonly baseUrl: string;
  readonly model: string;
  /** A function, so that no log line and no JSON has the key. */
  readonly key: () => string | undefined;
}

export interface Ask {
  readonly messages: readonly PromptMessage[];
  readonly temperature: number;
  readonly timeoutMs: number;
}

/** Some servers give parts: what the model thought, and what it said. */
const contentSchema = z.union([
  z.string(),
  z
    .array(z.object({ type: z.string(), text: z.unknown().optional() }))
    .transform((parts) => parts.map(({ type, text }) => (type === 'text' ? text : '')).join('')),
]);
/** A model that will not answer, or reasons to the end of its tokens, has no content. */
const choiceSchema = z.object({
  message: z.object({ content: contentSchema.nullish() }),
  finish_reason: z.unknown().optional(),
});
const answerSchema = z.object({ choices: z.tuple([choiceSchema], z.unknown()) });

/**
 * The text of its answer, which may be none: what was cut for its length is. Throws JUDGE_UNAVAILABLE, with `retryAfterMs`
 * where it asks to wait, and JUDGE_REFUSED: they say no more of what it answered than the status.
 */
export async function askJudge(judge: Judge, ask: Ask, signal: AbortSignal): Promise<string> {
  using deadline = new Deadline(ask.timeoutMs, signal);
  try {
    const response = await fetch(chatOf(judge), {
      method: 'POST',
      headers: headersOf(judge),
      body: JSON.stringify({ model: judge.model, messages: ask.messages, temperature: ask.temperature }),
      redirect: 'error',
      signal: deadline.signal,
    });
    if (!response.ok) {
      await response.body?.cancel();
      const what = `answered with status ${response.status}`;
      throw REFUSED.includes(response.status)
        ? failure('JUDGE_REFUSED', judge, what)
        : failure('JUDGE_UNAVAILABLE', judge, what, waitOf(response));
    }
    const answer = answerSchema.safeParse(JSON.parse(await bodyOf(judge, response)));
    if (answer.success) return saidIn(answer.data.choices[0]);
    throw unavailable(judge, 'answered with what is no chat completion');
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof PolarError) throw error;
    if (deadline.isOver) throw unavailable(judge, `did not answer in ${ask.timeoutMs} ms`, error);
    throw unavailable(
      judge,
      error instanceof SyntaxError ? 'answered with no JSON' : 'was not reached',
      error,
    );
  }
}

const saidIn = ({ message, finish_reason }: z.output<typeof choiceSchema>): string =>
  finish_reason === 'length' ? '' : (message.content ?? '');

function waitOf({ status, headers }: Response): PolarErrorOptions {
  const ms = retryAfterMs(headers) ?? (status === TOO_MANY_REQUESTS ? WAIT_MS : undefined);
  return ms === undefined ? {} : { retryAfterMs: ms };
}

function chatOf({ baseUrl }: Judge): URL {
  const url = new URL(baseUrl);
  url.pathname = `${apiPath(url.pathname)}/chat/completions`;
  return url;
}

function headersOf({ key }: Judge): Record<string, string> {
  const secret = key();
  return {
    'content-type': 'application/json',
    ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
  };
}

async function bodyOf(judge: Judge, { body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.byteLength;
    if (size > ANSWER_BYTES_MAX)
      throw unavailable(judge, `answered with more than ${ANSWER_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const unavailable = (judge: Judge, what: string, cause?: unknown): PolarError =>
  failure('JUDGE_UNAVAILABLE', judge, what, { cause });

const failure = (reason: Reason, { name }: Judge, what: string, more: PolarErrorOptions = {}): PolarError =>
  new PolarError(reason, `judge ${name} ${what}`, more);
