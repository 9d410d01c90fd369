// One request to an engine that may take minutes until it answers, which is more than `fetch` waits.
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Deadline } from '../../../services/common/clock.ts';
import { PolarError } from '../../../services/common/errors.ts';

export interface EngineRequest {
  readonly url: string;
  /** Of the authorization header. */
  readonly key?: string | undefined;
  readonly body: object;
  readonly timeoutMs: number;
}

/** A million ids, each with its text and logprob. */
const REPLY_BYTES_MAX = 256 * 1024 * 1024;
/** Of an engine's own error that are told. */
const ERROR_CHARS = 500;
/** Of an engine that does not know the path, or the model. */
const NOT_THERE = 'real engines with the weights that sampled score ids again, the scripted one does not';

/** The JSON of the answer. Throws ENGINE_UNAVAILABLE, ENGINE_ERROR. */
export async function postToEngine({ url, key, body, timeoutMs }: EngineRequest): Promise<unknown> {
  using deadline = new Deadline(timeoutMs);
  try {
    const response = await send(new URL(url), key, JSON.stringify(body), deadline.signal);
    const text = await textOf(response, url);
    const { statusCode = 0 } = response;
    if (statusCode >= 200 && statusCode < 300) return jsonOf(text, url);
    const hint = statusCode === 404 ? `; ${NOT_THERE}` : '';
    const told = text.slice(0, ERROR_CHARS);
    throw new PolarError('ENGINE_ERROR', `${url} answers ${statusCode}: ${told}${hint}`);
  } catch (error) {
    if (error instanceof PolarError) throw error;
    const why = deadline.isOver ? deadline.signal.reason : error;
    throw new PolarError('ENGINE_UNAVAILABLE', `the engine at ${url} does not answer: ${whyOf(why)}`, {
      cause: error,
    });
  }
}

async function send(
  url: URL,
  key: string | undefined,
  body: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const post = url.protocol === 'https:' ? requestHttps : requestHttp;
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...(key && { authorization: `Bearer ${key}` }),
  };
  // As the LLM proxy asks it: directly, whatever http_proxy the environment has.
  const request = post(url, { method: 'POST', headers, agent: false, signal });
  request.on('response', resolve);
  request.on('error', reject);
  request.end(body);
  return await promise;
}

async function textOf(response: IncomingMessage, url: string): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > REPLY_BYTES_MAX) {
      throw new PolarError('ENGINE_ERROR', `${url} answers more than ${REPLY_BYTES_MAX} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function jsonOf(text: string, url: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const start = text.slice(0, ERROR_CHARS);
    throw new PolarError('ENGINE_ERROR', `${url} answers what is not JSON: ${start}`, { cause: error });
  }
}

/** A name with several addresses fails with one error for all of them, which has no message. */
const whyOf = ({ message, code }: NodeJS.ErrnoException): string => message || code || 'no reason is told';
