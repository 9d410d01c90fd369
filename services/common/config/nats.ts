// Where NATS is, and what it is shown of this side: a login, which the address may hold, too, or a file of credentials.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { natsCertificates } from './certificates.ts';
import { faulty } from './faults.ts';
import { port, variableName } from './fields.ts';

export type NatsLogin =
  | { readonly user: string; readonly password: string }
  | { readonly token: string }
  /** What a .creds file holds. */
  | { readonly creds: Uint8Array };

/** `read` is asked for each connection. A function, so that no log and no JSON holds what it returns. */
export interface NatsCredentials {
  /** What errors call them. */
  readonly named: string;
  readonly read: () => NatsLogin;
}

export interface NatsAddress {
  readonly servers: readonly string[];
  /** The servers again, comma separated. No address that is shown holds a login. */
  readonly shown: string;
  readonly credentials: NatsCredentials | undefined;
}

const SCHEMES = new Set(['nats:', 'tls:']);
const ADDRESS =
  'must be nats:// or tls://, a host and a port, several by commas; in a login before the host, / : @ # ? % and commas are percent-encoded';

/** Throws RangeError with what it must be, and nothing of what it is. */
export function natsAddress(url: string): NatsAddress {
  const parsed = url.split(',').map(serverOf);
  const servers = parsed.map(({ protocol, host }) => `${protocol}//${host}`);
  const [first, ...others] = parsed;
  const { username = '', password = '' } = first ?? {};
  if (others.some((one) => one.username !== '' && (one.username !== username || one.password !== password))) {
    throw new RangeError('must have one login for all servers, and have it with the first');
  }
  const credentials =
    username === '' ? undefined : { named: LOGIN_OF_URL, read: loginOf(username, password) };
  return { servers, shown: servers.join(','), credentials };
}

function serverOf(text: string): URL {
  const at = URL.parse(text.includes('://') ? text.trim() : `nats://${text.trim()}`);
  const {
    protocol = '',
    hostname = '',
    pathname = '',
    search = '',
    hash = '',
    username,
    password,
  } = at ?? {};
  const isServer = SCHEMES.has(protocol) && hostname !== '';
  const isAll = /^\/?$/.test(pathname) && search + hash === '' && (username !== '' || password === '');
  if (at === null || !isServer || !isAll) throw new RangeError(ADDRESS);
  return at;
}

const LOGIN_OF_URL = 'the login in POLAR_NATS_URL or nats.url';

/** What stands alone is a token. */
function loginOf(username: string, password: string): NatsCredentials['read'] {
  try {
    const [user, secret] = [decodeURIComponent(username), decodeURIComponent(password)];
    return () => (secret === '' ? { token: user } : { user, password: secret });
  } catch {
    throw new RangeError(ADDRESS);
  }
}

const WAYS = ['user', 'token_env', 'creds_file'] as const;

/** Keys of the topology that say how to log in. */
export const loginKeys = (
  given: { readonly [Way in (typeof WAYS)[number]]?: string | undefined },
): string[] => WAYS.filter((way) => given[way] !== undefined);

/** The topology's `nats`. */
export const nats = z
  .strictObject({
    /** Server or cluster, comma separated; POLAR_NATS_URL wins. Null: `polar up` starts its own. */
    url: z.string().nullable().default(null),
    /** Port of the server that `polar up` starts. */
    port: port.default(4222),
    user: z.string().min(1).optional(),
    /** Names of each service's variables that hold the password, or a token. */
    password_env: variableName.optional(),
    token_env: variableName.optional(),
    /** File with a JWT and the seed of an nkey. */
    creds_file: z.string().min(1).optional(),
    tls: natsCertificates.optional(),
  })
  .superRefine((given, ctx) => {
    const fault = (key: string, message: string): void =>
      ctx.addIssue({ code: 'custom', path: [key], message });
    const { url } = given;
    try {
      if (url !== null) natsAddress(url);
    } catch (error) {
      fault('url', (error as Error).message);
    }
    if ((given.user === undefined) !== (given.password_env === undefined)) {
      fault('password_env', 'and user come together');
    }
    const [first, second] = [...(url?.includes('@') ? ['a login in url'] : []), ...loginKeys(given)];
    if (second !== undefined) fault(second, `is not for use with ${first}`);
  });
type Nats = z.output<typeof nats>;

/** The address that holds for a process and what it logs in with there. Throws INVALID_CONFIG. */
export function natsOf(
  given: Nats,
  env: Readonly<Record<string, string | undefined>>,
): Pick<NatsAddress, 'shown' | 'credentials'> {
  const url = env['POLAR_NATS_URL'] || (given.url ?? `nats://127.0.0.1:${given.port}`);
  try {
    const { shown, credentials } = natsAddress(url);
    return { shown, credentials: credentials ?? credentialsOf(given, env) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw faulty('INVALID_CONFIG', 'the environment', [
      { field: 'POLAR_NATS_URL', description: error.message },
    ]);
  }
}

function credentialsOf(
  { user, password_env: passwordEnv, token_env: tokenEnv, creds_file: file }: Nats,
  env: Readonly<Record<string, string | undefined>>,
): NatsCredentials | undefined {
  const variable = (name: string, key: string): string => {
    const value = env[name];
    if (value !== undefined && value !== '') return value;
    const description = `must be set, as nats.${key} of the topology names it`;
    throw faulty('INVALID_CONFIG', 'the environment', [{ field: name, description }]);
  };
  if (user !== undefined && passwordEnv !== undefined) {
    const password = variable(passwordEnv, 'password_env');
    return { named: `nats.user and ${passwordEnv} (nats.password_env)`, read: () => ({ user, password }) };
  }
  if (tokenEnv !== undefined) {
    const token = variable(tokenEnv, 'token_env');
    return { named: `${tokenEnv} (nats.token_env)`, read: () => ({ token }) };
  }
  if (file === undefined) return undefined;
  return { named: `nats.creds_file (${file})`, read: () => ({ creds: readFileSync(file) }) };
}
