// Paths of the sandbox as the host's, for the process backend: it has no root of its own to put them in.

export type Rewrite = (text: string) => string;

/** Replaces whole leading path parts, wherever they stand in a text; the longest match wins. */
export function rewriter(targets: ReadonlyMap<string, string>): Rewrite {
  if (targets.size === 0) return (text) => text;
  const names = [...targets.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`(?<![\\w.-])(?:${names.map(escaped).join('|')})(?![\\w.-])`, 'g');
  return (text) => text.replace(pattern, (match) => targets.get(match) ?? match);
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
