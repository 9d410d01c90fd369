// Addresses and networks of IPv4 and IPv6 as numbers, and which of them are public.

export interface Address {
  readonly version: 4 | 6;
  readonly value: bigint;
}

export interface Network {
  readonly base: Address;
  /** Leading bits that all its addresses have. */
  readonly prefix: number;
}

const BITS = { 4: 32, 6: 128 } as const;
const MAPPED_PREFIX = 0xffffn;

/** Undefined for what is no address, and for one with a zone. An IPv4 address in IPv6's form is the IPv4 address. */
export function parseAddress(text: string): Address | undefined {
  const value = text.includes(':') ? valueOf6(text) : valueOf4(text);
  if (value === undefined) return undefined;
  if (!text.includes(':')) return { version: 4, value };
  if (value >> 32n === MAPPED_PREFIX) return { version: 4, value: value & 0xffffffffn };
  return { version: 6, value };
}

/** An address, or an address and a prefix length whose other bits are 0. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', length, ...rest] = text.split('/');
  const base = parseAddress(address);
  if (base === undefined || rest.length > 0) return undefined;
  const bits = BITS[base.version];
  if (length === undefined) return { base, prefix: bits };
  const prefix = /^\d{1,3}$/.test(length) ? Number(length) : bits + 1;
  if (prefix > bits) return undefined;
  const network = { base, prefix };
  return firstBits(base, prefix) << BigInt(bits - prefix) === base.value ? network : undefined;
}

export const isAlone = ({ base, prefix }: Network): boolean => prefix === BITS[base.version];

export function contains(network: Network, address: Address): boolean {
  const { base, prefix } = network;
  return base.version === address.version && firstBits(base, prefix) === firstBits(address, prefix);
}

/** The block of addresses that are nobody's in public which holds all of a network, if there is one. */
export const specialBlockOf = (network: Network): string | undefined =>
  SPECIAL.find(({ block }) => block.prefix <= network.prefix && contains(block, network.base))?.what;

const firstBits = ({ version, value }: Address, prefix: number): bigint =>
  value >> BigInt(BITS[version] - prefix);

function valueOf4(text: string): bigint | undefined {
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return undefined;
  const parts = text.split('.').map(Number);
  if (parts.some((part, i) => part > 255 || String(part) !== text.split('.')[i])) return undefined;
  return parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n);
}

/** The parser of URLs knows all of its forms, and gives one. */
function valueOf6(text: string): bigint | undefined {
  const url = URL.parse(`http://[${text}]/`);
  if (url === null) return undefined;
  const [head = '', tail] = url.hostname.slice(1, -1).split('::');
  const groups = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const [front, back] = [groups(head), groups(tail ?? '')];
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0');
  return [...front, ...zeros, ...back].reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

const special = (what: string, ...networks: string[]): { what: string; block: Network }[] =>
  networks.map((text) => {
    const block = parseNetwork(text);
    if (block === undefined) throw new TypeError(`${text} is no network`);
    return { what, block };
  });

/** IANA's special-purpose registries; of IPv6 everything that is not handed out as global unicast. */
const SPECIAL = [
  ...special('loopback', '127.0.0.0/8', '::1'),
  ...special('link-local', '169.254.0.0/16', 'fe80::/10'),
  ...special('private', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'),
  ...special('multicast', '224.0.0.0/4', 'ff00::/8'),
  ...special('reserved', '0.0.0.0/8', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15'),
  ...special('reserved', '198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4'),
  // Addresses of IPv4 lie in some of these too.
  ...special('reserved', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'),
  ...special('reserved', '::/3', '4000::/2', '8000::/1'),
];
