// Accounts of a nats-server as its operator makes them: signed claims, and a file of credentials for a user.
import { createHash } from 'node:crypto';
import { nkeys } from 'nats';

type KeyPair = ReturnType<typeof nkeys.createUser>;

/** Configuration of a server with one account that has JetStream, and what a user of it connects with. */
export function natsAccounts(): { config: string; creds: string } {
  const [operator, system, account, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ];
  const unlimited = { subs: -1, data: -1, payload: -1 };
  const limits = { ...unlimited, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
  const store = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  const of = (type: string, more: object) => ({ ...more, type, version: 2 });
  const operatorClaim = signed(operator, operator, of('operator', { system_account: system.getPublicKey() }));
  const systemClaim = signed(system, operator, of('account', { limits }));
  const accountClaim = signed(account, operator, of('account', { limits: { ...limits, ...store } }));
  const userClaim = signed(user, account, of('user', { ...unlimited, pub: {}, sub: {} }));
  const block = (what: string, text: string): string =>
    `-----BEGIN ${what}-----\n${text}\n------END ${what}------\n`;
  const preload = `${system.getPublicKey()}: ${systemClaim}, ${account.getPublicKey()}: ${accountClaim}`;
  return {
    config: `operator: ${operatorClaim}\nresolver: MEMORY\nresolver_preload { ${preload} }`,
    creds: `${block('NATS USER JWT', userClaim)}\n${block('USER NKEY SEED', Buffer.from(user.getSeed()).toString())}`,
  };
}

/** A JWT in the form of NATS. */
function signed(subject: KeyPair, issuer: KeyPair, nats: object): string {
  const part = (value: object | Uint8Array): string =>
    Buffer.from(value instanceof Uint8Array ? value : JSON.stringify(value)).toString('base64url');
  const iat = Math.floor(Date.now() / 1000);
  const claims = { iat, iss: issuer.getPublicKey(), name: 'test', sub: subject.getPublicKey(), nats };
  const jti = createHash('sha256').update(JSON.stringify(claims)).digest('base64url');
  const body = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part({ jti, ...claims })}`;
  return `${body}.${part(issuer.sign(Buffer.from(body)))}`;
}
