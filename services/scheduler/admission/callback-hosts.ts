// Where callbacks may go: to public addresses, and to what the topology names. Else whoever may submit a task could have the
// scheduler call services that only it can reach.
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { PolarError } from '../../common/errors.ts';

/** IPv4 that is not public (IANA's registry of special purposes, multicast, reserved). */
const INSIDE_V4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
];
/** IPv6 that is public, and what is not within it: Teredo and other protocols, documentation, 6to4. */
const PUBLIC_V6 = ['2000::/3'];
const INSIDE_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const insideV4 = blockList(INSIDE_V4, 'ipv4');
const publicV6 = blockList(PUBLIC_V6, 'ipv6');
const insideV6 = blockList(INSIDE_V6, 'ipv6');

export class CallbackHosts {
  readonly #named: ReadonlySet<string>;

  /** `named`: hosts that callbacks may go to wherever they are, as `host` or `host:port`. */
  constructor(named: readonly string[]) {
    this.#named = new Set(named.map((one) => one.toLowerCase()));
  }

  /** Why a URL cannot be called, as far as it says so itself; undefined where its name is still to be resolved. */
  fault(url: URL): string | undefined {
    if (this.#isNamed(url)) return undefined;
    const host = bare(url.hostname);
    const inside = isIP(host) > 0 ? !isPublicAddress(host) : /(^|\.)localhost\.?$/.test(host);
    return inside ? refusal(url.hostname) : undefined;
  }

  /** How the name in a URL is resolved for the connection itself: to public addresses only, unless it is named. */
  lookupFor(url: URL): LookupFunction {
    const named = this.#isNamed(url);
    return (name, options, done) => {
      lookup(name, { ...(options as LookupOptions), all: true }, (error, addresses) => {
        const open = error ? [] : addresses.filter(({ address }) => named || isPublicAddress(address));
        const [first] = open;
        if (error) done(error, []);
        else if (first === undefined) done(new PolarError('CALLBACK_REFUSED', refusal(name)), []);
        else if (options.all === true) done(null, open);
        else done(null, first.address, first.family);
      });
    };
  }

  #isNamed({ protocol, hostname, port }: URL): boolean {
    const usual = protocol === 'https:' ? '443' : '80';
    return this.#named.has(hostname) || this.#named.has(`${hostname}:${port || usual}`);
  }
}

export function isPublicAddress(address: LookupAddress['address']): boolean {
  if (isIP(address) === 4) return !insideV4.check(address, 'ipv4');
  return publicV6.check(address, 'ipv6') && !insideV6.check(address, 'ipv6');
}

const refusal = (host: string): string =>
  `${host} is not public: callbacks go there only where rollout.callback_hosts of the topology names it`;

/** IPv6 stands in brackets in URLs. */
const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');

function blockList(nets: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const net of nets) {
    const [address = '', bits] = net.split('/');
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}
