// Names of tests, as they are expected and as test programs print them.

/**
 * The name without its file, so that it is the same wherever the tests lie: of `path::Class::test` the last two parts,
 * joined by a dot; of `path::test` the last one.
 */
export function normaliseName(name: string): string {
  const bracket = name.indexOf('[');
  // Parameters may hold `::` themselves.
  const [stem, parameters] = bracket < 0 ? [name, ''] : [name.slice(0, bracket), name.slice(bracket)];
  const parts = stem.split('::');
  const named = parts.length > 2 ? parts.slice(-2).join('.') : (parts.at(-1) as string);
  return (named + parameters).trim();
}

/** Names that are one once they are normalised, of which different results are expected. */
export function contradictions(expected: Readonly<Record<string, string>>): [name: string, other: string][] {
  const first = new Map<string, string>();
  const found: [string, string][] = [];
  for (const [name, result] of Object.entries(expected)) {
    const other = first.get(normaliseName(name));
    if (other === undefined) first.set(normaliseName(name), name);
    else if (expected[other] !== result) found.push([name, other]);
  }
  return found;
}
