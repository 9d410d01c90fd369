// What a command may connect to, by the rules of its egress list.
import type { EgressRule } from '../../../gen/ts/polar/common/v1/network_pb.js';
import {
  type Address,
  contains,
  isAlone,
  type Network,
  parseAddress,
  specialBlockOf,
} from '../../common/specs/addresses.ts';
import { type EgressHost, egressHost } from '../../common/specs/egress.ts';

export interface Target {
  /** In lower case, without a dot at its end; an address without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Which rule has refused a connection. */
export type EgressDenial = 'not_listed' | 'address_not_public' | 'address_of_node';

/** Why a target cannot be reached; undefined: it can. */
export interface Denied {
  readonly rule: EgressDenial;
  readonly why: string;
}

interface Rule {
  readonly host: EgressHost;
  readonly port: number;
}

export class EgressPolicy {
  readonly #rules: readonly Rule[];
  readonly #ofNode: readonly Address[];

  /** `nodeAddresses`: those of the machine itself, which a public name may lead to. */
  constructor(rules: readonly Pick<EgressRule, 'host' | 'port'>[], nodeAddresses: readonly string[]) {
    this.#rules = rules.flatMap(({ host, port }) => {
      const parsed = egressHost(host);
      return parsed === undefined ? [] : [{ host: parsed, port }];
    });
    this.#ofNode = nodeAddresses.flatMap((text) => parseAddress(text) ?? []);
  }

  /** Whether a target is listed at all, before its name is looked up. */
  listed({ host, port }: Target): Denied | undefined {
    const address = parseAddress(host);
    const hit = this.#rules.some(
      (rule) =>
        rule.port === port &&
        (address === undefined
          ? names(rule.host, host)
          : rule.host.kind === 'network' && contains(rule.host.network, address)),
    );
    return hit ? undefined : { rule: 'not_listed', why: `${host}:${port} is not in runtime.network` };
  }

  /**
   * Whether a listed target may be reached at this address. A name says nothing of the addresses that its owner may give
   * it: those inside are open only where the list has them as addresses.
   */
  open({ host, port }: Target, text: string): Denied | undefined {
    const address = parseAddress(text);
    const block = address === undefined ? 'unknown' : specialBlockOf(alone(address));
    const ofNode = address !== undefined && this.#ofNode.some((one) => same(one, address));
    if (block === undefined && !ofNode) return undefined;
    if (address !== undefined && this.#explicit(address, port)) return undefined;
    const where = host === text ? host : `${host} (${text})`;
    if (block === undefined) {
      return { rule: 'address_of_node', why: `${where} is this node itself and not listed as an address` };
    }
    return { rule: 'address_not_public', why: `${where} is ${block} and not listed as an address` };
  }

  /** A rule that names this very address, or a network of which nothing is public. */
  #explicit(address: Address, port: number): boolean {
    return this.#rules.some(
      ({ host, port: rulePort }) =>
        rulePort === port &&
        host.kind === 'network' &&
        contains(host.network, address) &&
        (isAlone(host.network) || specialBlockOf(host.network) !== undefined),
    );
  }
}

function names(rule: EgressHost, host: string): boolean {
  if (rule.kind === 'below') return host.endsWith(rule.suffix) && host.length > rule.suffix.length;
  return rule.kind === 'name' && rule.name === host;
}

const alone = (base: Address): Network => ({ base, prefix: base.version === 4 ? 32 : 128 });

const same = (a: Address, b: Address): boolean => a.version === b.version && a.value === b.value;

/** `host:port` of a request, as every reader of URLs takes it; undefined for what is none. */
export function targetOf(authority: string, defaultPort: number): Target | undefined {
  const url = URL.parse(`http://${authority}/`);
  if (url === null || url.username !== '' || url.password !== '' || url.pathname !== '/') return undefined;
  if (url.search !== '' || url.hash !== '') return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (host === '') return undefined;
  // 80 is the parser's own default, which it leaves out.
  const written = /:(\d+)$/.exec(authority)?.[1];
  const port = written === undefined ? defaultPort : Number(written);
  return port > 0 ? { host, port } : undefined;
}

export const textOf = ({ host, port }: Target): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
