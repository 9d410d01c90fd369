// What an engine says of an image that it could not fetch.

/** Of a registry that answers, and does not have, or give, the image; or of a name that is none. */
const REFUSALS: readonly RegExp[] = [
  /\b(manifest|name) unknown\b/i,
  /\bmanifest for \S+ not found\b/,
  /\bfailed to resolve reference .*: not found$/,
  /(^|: )(denied|unauthorized)\b/,
  /\b(pull access|access to the resource is) denied\b/,
  /\binsufficient_scope\b/,
  /\brepository \S+ not found\b|\brepository does not exist\b/,
  /\bdid not resolve to an alias\b/,
  /\binvalid reference format\b|\brepository name must\b/,
  /\bno matching manifest for\b|\bno image found in (manifest list|image index)\b/,
];

/** False: another try, or another node, may do better. */
export const isRefused = (said: string): boolean => REFUSALS.some((refusal) => refusal.test(said));
