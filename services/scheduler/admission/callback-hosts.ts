// Where callbacks may go: to public addresses, and to what the topology names. Else whoever may submit a task could have the
// scheduler call services that only it can reach.
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { PolarError } from '../../common/errors.ts';
import { parseNetwork, specialBlockOf } from '../../common/specs/addresses.ts';

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

export function isPublicAddress(text: LookupAddress['address']): boolean {
  const network = parseNetwork(text);
  return network !== undefined && specialBlockOf(network) === undefined;
}

const refusal = (host: string): string =>
  `${host} is not public: callbacks go there only where rollout.callback_hosts of the topology names it`;

/** IPv6 stands in brackets in URLs. */
const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');
