// A GET that goes to its address: with NODE_USE_ENV_PROXY, `fetch` and Node's own agents send what is for this machine through
// the http_proxy of the environment, too.
import { get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps, type RequestOptions } from 'node:https';

/** The answer, of which the caller reads or destroys the body. Throws what the connection throws. */
export function getDirectly(
  url: string,
  timeoutMs: number,
  options: RequestOptions = {},
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const get = url.startsWith('https:') ? getHttps : getHttp;
  const direct = { ...options, agent: false, signal: AbortSignal.timeout(timeoutMs) };
  get(url, direct, (response) => {
    response.on('error', () => {});
    resolve(response);
  }).once('error', reject);
  return promise;
}
