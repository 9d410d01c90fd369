// What NATS is shown when a connection is made.
import {
  type Authenticator,
  credsAuthenticator,
  type NatsError,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from 'nats';
import { faulty } from '../config/faults.ts';
import type { NatsCredentials, NatsLogin } from '../config/nats.ts';

function authenticatorFor(login: NatsLogin): Authenticator {
  if ('creds' in login) {
    const authenticator = credsAuthenticator(login.creds);
    // It throws where the file holds no JWT and seed.
    authenticator('a nonce');
    return authenticator;
  }
  if ('token' in login) return tokenAuthenticator(login.token);
  return usernamePasswordAuthenticator(login.user, login.password);
}

/** A file that is renewed is read by the next connection; while it cannot be used, what it held before holds on. */
export function authenticatorOf({ named, read }: NatsCredentials): Authenticator {
  let last: Authenticator;
  try {
    last = authenticatorFor(read());
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const description = code === 'BAD_CREDS' ? 'holds no JWT and seed of a user' : message;
    throw faulty('INVALID_CONFIG', 'the login at NATS', [{ field: named, description }]);
  }
  return (nonce) => {
    try {
      last = authenticatorFor(read());
    } catch {
      // The client would end its connection for good.
    }
    return last(nonce);
  };
}

const REFUSED = new Set(['AUTHORIZATION_VIOLATION', 'AUTHENTICATION_EXPIRED', 'ACCOUNT_EXPIRED']);

/** Why the server does not let this side in; undefined: it is something else. */
export function loginFault(error: unknown, credentials: NatsCredentials | undefined): string | undefined {
  const { code, message } = error as NatsError;
  if (!REFUSED.has(code)) return undefined;
  if (credentials !== undefined) return `it refuses ${credentials.named}: ${message}`;
  const ways = 'nats.user and nats.password_env, nats.token_env or nats.creds_file';
  return `it asks for a login: set ${ways}, or put one into POLAR_NATS_URL (nats://user:password@host)`;
}
