// Access tokens as they lie in a file: never themselves, but their digests.
import { randomBytes } from 'node:crypto';
import { faulty } from '../config/faults.ts';
import type { FieldFault } from '../errors.ts';
import { sha256 } from '../ids.ts';
import { isScope, SCOPES, type Scope } from './scopes.ts';

/** Lines of a file at most. */
const ACCESS_TOKENS_MAX = 1_000;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const DIGEST = /^[0-9a-f]{64}$/;
/** Bytes that a token is made of. */
const TOKEN_BYTES = 32;

/** Whose a token is, and what it is good for. */
export interface Access {
  readonly name: string;
  readonly scopes: ReadonlySet<Scope>;
}

/** A new token and the line that stands for it in the file. Throws INVALID_REQUEST. */
export function newToken(name: string, scopes: readonly string[]): { token: string; line: string } {
  const faults: FieldFault[] = [];
  if (!NAME.test(name)) faults.push({ field: 'NAME', description: 'must be 1 to 64 of [A-Za-z0-9._-]' });
  if (scopes.length === 0 || !scopes.every(isScope)) {
    faults.push({ field: 'scopes', description: `must be one or more of ${SCOPES.join(', ')}` });
  }
  if (faults.length > 0) throw faulty('INVALID_REQUEST', 'the token', faults);
  const token = `polar_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
  return { token, line: `${name} ${scopes.join(',')} ${sha256(token)}` };
}

/** By digest. Throws INVALID_CONFIG with every fault: a line is `name scope,scope sha256`, `#` begins a comment. */
export function parseTokens(text: string, file: string): ReadonlyMap<string, Access> {
  const faults: FieldFault[] = [];
  const tokens = new Map<string, Access>();
  const names = new Set<string>();
  for (const [i, line] of text.split('\n').entries()) {
    const words = line.replace(/#.*/, '').trim().split(/\s+/);
    if (words[0] === '') continue;
    const fault = faultOf(words, names);
    if (fault !== undefined) faults.push({ field: `line ${i + 1}`, description: fault });
    const [name = '', scopes = '', digest = ''] = words;
    names.add(name);
    tokens.set(digest, { name, scopes: new Set(scopes.split(',').filter(isScope)) });
  }
  if (tokens.size === 0 && faults.length === 0) {
    faults.push({ field: '(file)', description: 'holds no token: make one with `polar token`' });
  }
  if (tokens.size > ACCESS_TOKENS_MAX) {
    faults.push({ field: '(file)', description: `has more than ${ACCESS_TOKENS_MAX} tokens` });
  }
  if (faults.length > 0) throw faulty('INVALID_CONFIG', file, faults);
  return tokens;
}

function faultOf(words: readonly string[], names: ReadonlySet<string>): string | undefined {
  const [name = '', scopes = '', digest = '', ...rest] = words;
  if (!NAME.test(name)) return 'must begin with a name, 1 to 64 of [A-Za-z0-9._-]';
  if (names.has(name)) return `the name ${name} is there twice`;
  const unknown = scopes.split(',').find((scope) => !isScope(scope));
  if (unknown !== undefined) return `${unknown || 'nothing'} is none of ${SCOPES.join(', ')}`;
  if (!DIGEST.test(digest) || rest.length > 0)
    return 'must end with the SHA-256 of the token, in hexadecimal';
  return undefined;
}
