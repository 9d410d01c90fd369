// The network of one command: nothing but listeners inside its namespace that are accepted here.
import type { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Command, NetworkUse } from '../domain/command.ts';
import { Denials } from '../domain/denials.ts';
import { EgressPolicy, type Target } from '../domain/egress.ts';
import { unreachable } from '../egress/connect.ts';
import { EgressProxy } from '../egress/proxy.ts';
import { forwardConnections, type ProxyConnect, ProxyLine } from '../host/forward.ts';
import type { NetnsBroker } from '../host/netns-broker.ts';
import { Unrouted } from '../host/unrouted.ts';
import { DIRECT_ENV, EGRESS_ENV, EGRESS_PORT, PROXY_PORT } from './proxy-port.ts';

export interface NetworkParts {
  readonly broker: NetnsBroker;
  readonly proxy: ProxyConnect;
}

export interface CommandNetwork {
  /** Of a command that has ended; it waits until it is known whether the LLM proxy was there to the last. */
  result(): Promise<NetworkUse>;
  close(): void;
}

/** Given way to by everything that a command sets itself. */
export const networkEnv = ({ egress = [] }: Pick<Command, 'egress'>): Readonly<Record<string, string>> =>
  egress.length > 0 ? EGRESS_ENV : DIRECT_ENV;

/** In the namespace of `pid`. Throws SANDBOX_FAILED. */
export async function openNetwork(
  { broker, proxy }: NetworkParts,
  pid: number,
  { proxyAs: session, egress = [] }: Command,
): Promise<CommandNetwork> {
  using opened = new DisposableStack();
  const unrouted = opened.use(new Unrouted(pid));
  const line = session === undefined ? undefined : new ProxyLine(proxy, session);
  const forwarding = line && forwardConnections(await broker.open(pid, PROXY_PORT), () => line.connect());
  opened.defer(() => forwarding?.close());
  const outward =
    egress.length === 0
      ? undefined
      : new EgressProxy(await broker.open(pid, EGRESS_PORT), {
          policy: new EgressPolicy(egress, nodeAddresses()),
          inside: (target, signal) =>
            line !== undefined && isProxy(target) ? toProxy(line, target, signal) : undefined,
        });
  opened.defer(() => outward?.close());
  const all = opened.move();
  return {
    async result() {
      await line?.looked();
      const denied = new Denials();
      if (outward !== undefined) denied.add(outward.denials);
      denied.add({ count: unrouted.count, targets: [] });
      return { proxyConnectFailures: forwarding?.failures ?? 0, proxyAway: line?.isAway ?? false, denied };
    },
    close: () => all.dispose(),
  };
}

const nodeAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));

/** Some clients send everything to the proxy of their environment, whatever NO_PROXY says. */
const isProxy = ({ host, port }: Target): boolean =>
  port === PROXY_PORT && (host === '127.0.0.1' || host === 'localhost');

async function toProxy(line: ProxyLine, target: Target, signal: AbortSignal): Promise<Socket> {
  const socket = await line.connect();
  if (signal.aborted) socket?.destroy();
  if (socket === undefined) throw unreachable(target, new Error('the LLM proxy does not answer'));
  return socket;
}
