// The egress lists of a task: defaults, faults, and what the host of a rule means.
import type { EgressRule, NetworkPolicy } from '../../../gen/ts/polar/common/v1/network_pb.js';
import { EGRESS_RULES_MAX } from '../limits.ts';
import { type Network, parseNetwork } from './addresses.ts';
import type { Faults } from './faults-of.ts';

export type EgressHost =
  | { readonly kind: 'name'; readonly name: string }
  /** Every name that ends with `suffix`, which begins with a dot. */
  | { readonly kind: 'below'; readonly suffix: string }
  | { readonly kind: 'network'; readonly network: Network };

export const EGRESS_HOST_FORMS =
  'must be a name, *. and a name, an address, or a network such as 10.1.0.0/16';
const PORT_DEFAULT = 443;
const PORT_MAX = 65_535;
const NAME_CHARS_MAX = 253;
const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
const NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);

/** Undefined for what is none. */
export function egressHost(host: string): EgressHost | undefined {
  const network = parseNetwork(host);
  if (network !== undefined) return { kind: 'network', network };
  const below = host.startsWith('*.');
  const name = below ? host.slice(2) : host;
  // Names of digits alone are addresses in disguise: 127.1, 2130706433.
  if (name.length > NAME_CHARS_MAX || !NAME.test(name) || /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/.test(name)) {
    return undefined;
  }
  return below ? { kind: 'below', suffix: `.${name}` } : { kind: 'name', name };
}

/** Fills in what is unset; changes `network` itself. */
export function completeNetwork(network: NetworkPolicy): void {
  for (const rule of rulesOf(network)) {
    rule.host = rule.host.toLowerCase();
    if (rule.port === 0) rule.port = PORT_DEFAULT;
  }
}

export function checkNetwork({ egress, prepareEgress }: NetworkPolicy, field: string, faults: Faults): void {
  checkRules(egress, `${field}.egress`, faults);
  checkRules(prepareEgress, `${field}.prepare_egress`, faults);
}

function checkRules(rules: readonly EgressRule[], field: string, faults: Faults): void {
  faults.require(rules.length <= EGRESS_RULES_MAX, field, `must be at most ${EGRESS_RULES_MAX} rules`);
  for (const [i, { host, port }] of rules.entries()) {
    faults.require(egressHost(host) !== undefined, `${field}[${i}].host`, EGRESS_HOST_FORMS);
    faults.range(port, 1, PORT_MAX, `${field}[${i}].port`);
  }
}

/** Of both lists. */
export const rulesOf = (network: NetworkPolicy | undefined): EgressRule[] =>
  network === undefined ? [] : [...network.egress, ...network.prepareEgress];
