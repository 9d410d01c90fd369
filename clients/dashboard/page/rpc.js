// @ts-check
// Calls of the dashboard's own server by Connect's JSON: one reply, or a stream of messages in envelopes.

/** An answer that is an error: `code` is Connect's, such as not_found. */
export class CallError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Of one message of a stream. */
const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
const END_OF_STREAM = 2;
/** The dashboard answers within 30 s, and a watch says something every 10 s: where nothing comes for longer, nobody is there. */
const SILENT_MS = 35_000;

/**
 * @typedef {{ base?: string, node?: string, signal?: AbortSignal, silentMs?: number, headers?: Record<string, string> }} Options
 *   `node`: whose service is asked, where each node has one; `silentMs`: the call fails when nothing comes for so long
 */

/**
 * @param {string} method `polar.scheduler.v1.RolloutService/ListTasks` @param {object} request @param {Options} [options]
 * @returns {Promise<any>} the reply in its JSON form
 */
export async function call(method, request, options = {}) {
  const silence = silenceOf(options);
  try {
    const body = JSON.stringify(request);
    const response = await post(method, 'application/json', body, { ...options, signal: silence.signal });
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of heard(response, silence.renew)) text += decoder.decode(chunk, { stream: true });
    if (!response.ok) throw errorOf(text, response.status);
    return JSON.parse(text);
  } finally {
    silence.end();
  }
}

/**
 * @param {string} method @param {object} request @param {Options} [options]
 * @returns {AsyncGenerator<any>} messages in their JSON form
 */
export async function* stream(method, request, options = {}) {
  const silence = silenceOf(options);
  try {
    const body = enveloped(new TextEncoder().encode(JSON.stringify(request)));
    const response = await post(method, 'application/connect+json', body, {
      ...options,
      signal: silence.signal,
    });
    if (!response.ok) throw errorOf(await response.text(), response.status);
    for await (const { flags, text } of envelopes(heard(response, silence.renew))) {
      const message = JSON.parse(text);
      if ((flags & END_OF_STREAM) === 0) yield message;
      else if (message.error !== undefined)
        throw new CallError(message.error.code, message.error.message ?? '');
      else return;
    }
    throw new CallError('unavailable', 'the stream was cut');
  } finally {
    silence.end();
  }
}

/** The caller's signal, which fires as well when nothing came for too long. @param {Options} options */
function silenceOf({ signal, silentMs = SILENT_MS }) {
  const over = new AbortController();
  const reason = new CallError('deadline_exceeded', `nothing came for ${silentMs / 1_000} s`);
  const begin = () => setTimeout(() => over.abort(reason), silentMs);
  let timer = begin();
  const end = () => clearTimeout(timer);
  const renew = () => {
    end();
    if (!signal?.aborted) timer = begin();
  };
  // A stream that its reader has left is not asked for its end.
  signal?.addEventListener('abort', end, { once: true });
  return {
    renew,
    end,
    signal: AbortSignal.any(signal === undefined ? [over.signal] : [signal, over.signal]),
  };
}

/**
 * What comes, as it comes: an answer may be large, and its way slow. Not every browser goes through a body by itself.
 * @param {Response} response @param {() => void} renew
 */
async function* heard({ body }, renew) {
  const reader = body?.getReader();
  try {
    for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) {
      renew();
      yield next.value;
    }
  } finally {
    reader?.cancel().catch(() => {});
  }
}

/** @param {string} method @param {string} type @param {string | Uint8Array<ArrayBuffer>} body @param {Options} options */
function post(method, type, body, { base = '', node, signal, headers }) {
  return fetch(`${base}/${method}`, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': type,
      'connect-protocol-version': '1',
      ...(node !== undefined && { 'polar-node': node }),
    },
    body,
    ...(signal !== undefined && { signal }),
  });
}

/** @param {string} text @param {number} status */
function errorOf(text, status) {
  try {
    const { code, message } = JSON.parse(text);
    return new CallError(code, message ?? '');
  } catch {
    return new CallError('unknown', `${status}: ${text.slice(0, 200)}`);
  }
}

/** @param {Uint8Array} bytes */
function enveloped(bytes) {
  const whole = new Uint8Array(5 + bytes.length);
  new DataView(whole.buffer).setUint32(1, bytes.length);
  whole.set(bytes, 5);
  return whole;
}

/**
 * @param {AsyncIterable<Uint8Array>} chunks
 * @returns {AsyncGenerator<{ flags: number, text: string }>}
 */
export async function* envelopes(chunks) {
  let rest = new Uint8Array(0);
  for await (const chunk of chunks) {
    const joined = new Uint8Array(rest.length + chunk.length);
    joined.set(rest);
    joined.set(chunk, rest.length);
    rest = joined;
    for (;;) {
      if (rest.length < 5) break;
      const size = new DataView(rest.buffer, rest.byteOffset).getUint32(1);
      if (size > MESSAGE_BYTES_MAX) throw new CallError('resource_exhausted', 'a message is too large');
      if (rest.length < 5 + size) break;
      yield { flags: rest[0] ?? 0, text: new TextDecoder().decode(rest.subarray(5, 5 + size)) };
      rest = rest.subarray(5 + size);
    }
  }
}
