// One POST of a callback: no redirect is followed, nothing of the answer is read but its status, and the connection goes to
// an address that was looked at, since what a name means may change between a look and a connection.
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { PolarError } from '../../common/errors.ts';
import type { CallbackHosts } from '../admission/callback-hosts.ts';

export interface CallbackPost {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly hosts: CallbackHosts;
  readonly signal: AbortSignal;
}

/** Resolves to the status. Throws CALLBACK_REFUSED, what the connection throws, the signal's reason. */
export async function postCallback({ url, body, headers, hosts, signal }: CallbackPost): Promise<number> {
  const target = new URL(url);
  const fault = hosts.fault(target);
  if (fault !== undefined) throw new PolarError('CALLBACK_REFUSED', fault);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const send = target.protocol === 'https:' ? requestHttps : requestHttp;
  const length = String(Buffer.byteLength(body));
  const request = send(target, {
    method: 'POST',
    headers: { ...headers, 'content-length': length },
    // A connection of its own: a kept one was looked at for another URL.
    agent: false,
    lookup: hosts.lookupFor(target),
    signal,
  });
  request.on('response', (response) => {
    resolve(response.statusCode ?? 0);
    response.on('error', () => {});
    response.destroy();
  });
  request.on('error', (error) => reject(signal.aborted ? signal.reason : error));
  request.end(body);
  return await promise;
}
