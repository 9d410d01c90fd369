// A judge: a model behind OpenAI's chat API that the topology names. Its key is in the header of a request and nowhere else.
import { z } from 'zod';
import { Deadline } from '../../common/clock.ts';
import { PolarError, type Reason } from '../../common/errors.ts';
import type { PromptMessage } from '../domain/judge-prompt.ts';

/** What of a judge's answer is read; above: JUDGE_UNAVAILABLE. */
const ANSWER_BYTES_MAX = 1024 * 1024;
/** It does not take the question: too long for its model, or a parameter that it does not know. */
const REFUSED: readonly number[] = [400, 413, 422];

export interface Judge {
  readonly name: string;
  /** With or without /v1 at its end. */
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

/** A model that will not answer, or reasons to the end of its tokens, has no content. */
const answerSchema = z.object({
  choices: z.tuple([z.object({ message: z.object({ content: z.string().nullish() }) })], z.unknown()),
});

/** The text of its answer, which may be none. Throws JUDGE_UNAVAILABLE, JUDGE_REFUSED: they say no more of what it answered than the status. */
export async function askJudge(judge: Judge, ask: Ask, signal: AbortSignal): Promise<string> {
  using deadline = new Deadline(ask.timeoutMs, signal);
  try {
    const response = await fetch(`${judge.baseUrl.replace(/\/v1$/, '')}/v1/chat/completions`, {
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
        : unavailable(judge, what);
    }
    const answer = answerSchema.safeParse(JSON.parse(await bodyOf(judge, response)));
    if (answer.success) return answer.data.choices[0].message.content ?? '';
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
  failure('JUDGE_UNAVAILABLE', judge, what, cause);

const failure = (reason: Reason, { name }: Judge, what: string, cause?: unknown): PolarError =>
  new PolarError(reason, `judge ${name} ${what}`, { cause });
