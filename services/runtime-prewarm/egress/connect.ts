// A connection to a target that the list opens, made to the very address that was looked at.
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

/** Throws a Refusal: denied, or not reached within EGRESS_CONNECT_MS. */
export async function connectTo(policy: EgressPolicy, target: Target, signal: AbortSignal): Promise<Socket> {
  const unlisted = policy.listed(target);
  if (unlisted !== undefined) throw new Refusal('EGRESS_DENIED', unlisted.why, unlisted.rule);
  const all = AbortSignal.any([signal, AbortSignal.timeout(EGRESS_CONNECT_MS)]);
  const found = await addressesOf(target, all);
  const open = found.filter((address) => policy.open(target, address) === undefined);
  const [first] = found;
  const denied = first === undefined ? undefined : policy.open(target, first);
  if (open.length === 0 && denied !== undefined) throw new Refusal('EGRESS_DENIED', denied.why, denied.rule);
  let why: unknown = new Error('the name has no address');
  for (const address of open.slice(0, EGRESS_ADDRESSES_TRIED_MAX)) {
    try {
      return await connectOnce(address, target.port, all);
    } catch (error) {
      why = error;
    }
  }
  throw unreachable(target, why);
}

export const unreachable = (target: Target, why: unknown): Refusal =>
  new Refusal('EGRESS_UNREACHABLE', `${textOf(target)} cannot be reached: ${(why as Error).message}`);

async function addressesOf(target: Target, signal: AbortSignal): Promise<string[]> {
  if (isIP(target.host) !== 0) return [target.host];
  try {
    const found = await abortable(
      lookups.run(() => (signal.aborted ? Promise.resolve([]) : lookup(target.host, { all: true }))),
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
