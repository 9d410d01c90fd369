// Who may ask the dashboard for what. It holds the operator's token, so no other page of the operator's browser may use it:
// not under another name (DNS rebinding), not across origins. Nobody else on the machine may either, such as a harness whose
// sandbox has the network of its host: where there is something to be had, it asks for a password on loopback, too.
import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { sha256 } from '../../services/common/ids.ts';

export interface Guard {
  /** Names under which a page may come; undefined: any, as the password protects it. */
  readonly hosts: ReadonlySet<string> | undefined;
  /** What a visitor's browser asks for; undefined: nothing. */
  readonly password: string | undefined;
}

export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const RPC_TYPES = ['application/json', 'application/connect+json'];

/** Undefined: it may go on. */
export function refusalOf(
  { hosts, password }: Guard,
  method: string,
  headers: IncomingHttpHeaders,
): Refusal | undefined {
  const { host } = headers;
  if (host === undefined || (hosts !== undefined && !hosts.has(host.toLowerCase()))) {
    return { status: 421, message: 'this dashboard is not served under that name' };
  }
  if (password !== undefined && !hasPassword(headers.authorization, password)) {
    const ask = { 'www-authenticate': 'Basic realm="polar dashboard", charset="UTF-8"' };
    return { status: 401, message: 'the password of this dashboard is needed', headers: ask };
  }
  if (method === 'GET' || method === 'HEAD') return undefined;
  if (method !== 'POST')
    return { status: 405, message: 'GET and POST only', headers: { allow: 'GET, POST' } };
  return isOwnPage(headers, host) ? undefined : { status: 403, message: 'calls come from its own page only' };
}

/** A page of another origin cannot send these types without being asked for first, which nobody answers. */
function isOwnPage(headers: IncomingHttpHeaders, host: string): boolean {
  if (!RPC_TYPES.includes(headers['content-type'] ?? '')) return false;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin } = headers;
  return origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
}

/** Digests are compared: they are of one length. */
function hasPassword(authorization: string | undefined, password: string): boolean {
  const [, encoded = ''] = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(authorization ?? '') ?? [];
  const given = Buffer.from(encoded, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:/, '');
  return timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(password)));
}

export interface Reach {
  readonly host: string;
  /** It calls the mesh with a token. */
  readonly token: boolean;
  readonly actions: boolean;
}

/** Only what shows on loopback what anyone there can ask the mesh for needs none. */
export const needsPassword = ({ host, token, actions }: Reach): boolean =>
  token || actions || !isLoopback(host);

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

export const isLoopback = (host: string): boolean => [...LOOPBACK, '::1'].includes(host);

/** Names of this machine for itself, with the port. */
export const loopbackHosts = (port: number): ReadonlySet<string> =>
  new Set(LOOPBACK.flatMap((name) => [`${name}:${port}`, ...(port === 80 ? [name] : [])]));
