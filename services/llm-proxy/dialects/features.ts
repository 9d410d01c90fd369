// What a dialect does with each part of a request: the rules that its reader goes by, and docs/dialects.md shows.
import type { JsonObject } from '../domain/json.ts';
import type { Check, Faults } from './faults.ts';

export type Support =
  /** Goes to the engine as it is. */
  | 'carried'
  /** Goes to the engine in other words. */
  | 'mapped'
  /** Says nothing to the engine. */
  | 'ignored'
  /** Answered with 400. */
  | 'refused';

export interface Rule {
  readonly support: Support;
  /** What becomes of it; of what is refused, also what the harness is told. */
  readonly how: string;
  /** What a value must be. A refused one passes where this holds, as it then asks for nothing. */
  readonly check?: Check;
}

export type Rules = Readonly<Record<string, Rule>>;

/** One row of docs/dialects.md. */
export interface Feature {
  /** `fields`, `tools`, … */
  readonly part: string;
  readonly name: string;
  readonly support: Support;
  readonly how: string;
}

export const featuresOf = (part: string, rules: Rules): Feature[] =>
  Object.entries(rules).map(([name, { support, how }]) => ({ part, name, support, how }));

/** The members of a body that are carried, after all are checked. Those without a rule are ignored. */
export function readFields(body: JsonObject, rules: Rules, faults: Faults): JsonObject {
  const carried: JsonObject = {};
  for (const key in body) {
    const value = body[key] ?? null;
    // Null stands for absent.
    if (value === null) continue;
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
    if (rule?.support === 'refused') faults.expect(rule.check?.ok(value) ?? false, key, rule.how);
    else if (rule?.check !== undefined) faults.check(value, key, rule.check);
    if (rule?.support === 'carried') carried[key] = value;
  }
  return carried;
}
