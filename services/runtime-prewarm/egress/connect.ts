// A connection to a target that the list opens, made to the very address that was looked at.
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import { abortable, Semaphore } from '../../common/clock.ts';
import {
  EGRESS_ADDRESSES_TRIED_MAX,
  EGRESS_CONNECT_MS,
  EGRESS_LOOKUPS_AT_ONCE_MAX,
} from '../../common/limits.ts';
import { type EgressPolicy, type Target, textOf } from '../domain/egress.ts';
import { Refusal } from './refusal.ts';

/** Lookups take threads that files are read with too. */
const lookups = new Semaphore(EGRESS_LOOKUPS_AT_ONCE_MAX);

export interface ConnectOptions {
  /** Default EGRESS_CONNECT_MS. */
  readonly connectMs?: number;
  /** Addresses of a name; default the system's. */
  readonly resolve?: (name: string) => Promise<readonly LookupAddress[]>;
}

/** Throws a Refusal: denied, or not reached in its time. An address that does not answer leaves the others their share. */
export async function connectTo(
  policy: EgressPolicy,
  target: Target,
  signal: AbortSignal,
  { connectMs = EGRESS_CONNECT_MS, resolve = resolveBySystem }: ConnectOptions = {},
): Promise<Socket> {
  const unlisted = policy.listed(target);
  if (unlisted !== undefined) throw new Refusal('EGRESS_DENIED', unlisted.why, unlisted.rule);
  const until = performance.now() + connectMs;
  const found = await addressesOf(target, resolve, AbortSignal.any([signal, AbortSignal.timeout(connectMs)]));
  const open = found.filter((address) => policy.open(target, address) === undefined);
  const [first] = found;
  const denied = first === undefined ? undefined : policy.open(target, first);
  if (open.length === 0 && denied !== undefined) throw new Refusal('EGRESS_DENIED', denied.why, denied.rule);
  let why: unknown = new Error('the name has no address');
  const tried = inTurns(open).slice(0, EGRESS_ADDRESSES_TRIED_MAX);
  for (const [i, address] of tried.entries()) {
    const shareMs = Math.max(0, Math.floor((until - performance.now()) / (tried.length - i)));
    try {
      return await connectOnce(address, target.port, AbortSignal.any([signal, AbortSignal.timeout(shareMs)]));
    } catch (error) {
      why = error;
    }
    if (signal.aborted) break;
  }
  throw unreachable(target, why);
}

export const unreachable = (target: Target, why: unknown): Refusal =>
  new Refusal('EGRESS_UNREACHABLE', `${textOf(target)} cannot be reached: ${(why as Error).message}`);

/** Of both versions of IP in turns, beginning with that of the first: a machine may have no way out by one of them. */
function inTurns(addresses: readonly string[]): string[] {
  const [first = ''] = addresses;
  const [one, other] = [
    addresses.filter((address) => isIP(address) === isIP(first)),
    addresses.filter((address) => isIP(address) !== isIP(first)),
  ];
  return addresses.flatMap((_, i) => [one[i], other[i]].filter((address) => address !== undefined));
}

const resolveBySystem = (name: string): Promise<LookupAddress[]> => lookup(name, { all: true });

async function addressesOf(
  target: Target,
  resolve: (name: string) => Promise<readonly LookupAddress[]>,
  signal: AbortSignal,
): Promise<string[]> {
  if (isIP(target.host) !== 0) return [target.host];
  try {
    const found = await abortable(
      lookups.run(async () => (signal.aborted ? [] : await resolve(target.host))),
      signal,
    );
    return found.map(({ address }) => address);
  } catch (error) {
    throw unreachable(target, error);
  }
}

function connectOnce(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true, allowHalfOpen: true });
    // The socket's own signal would cut it after it is connected too.
    const late = (): void => void socket.destroy(new Error('no answer in time'));
    signal.addEventListener('abort', late, { once: true });
    socket.once('close', () => signal.removeEventListener('abort', late));
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      signal.removeEventListener('abort', late);
      resolve(socket);
    });
    if (signal.aborted) late();
  });
}
