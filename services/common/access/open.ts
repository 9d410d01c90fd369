// Who may call a service, and by what certificates it serves, as the topology says.
import type { CommonConfig } from '../config/environment.ts';
import { faulty } from '../config/faults.ts';
import type { Logger } from '../logger.ts';
import type { CertificateStore } from '../tls/certificates.ts';
import { AccessControl } from './access-control.ts';
import type { Scope } from './scopes.ts';

/** What services ask of each other. */
const OWN_SCOPES: readonly Scope[] = ['node', 'read'];

export interface Guards {
  /** Undefined: whoever reaches the port may call. */
  readonly access: AccessControl | undefined;
  /** Undefined: without TLS. */
  readonly tls: CertificateStore | undefined;
}

const LOOPBACK = /^(127\.|::1$|localhost$)/;

/** `host` is where the service listens. Throws INVALID_CONFIG. */
export function openGuards(config: CommonConfig, log: Logger, host: string): Guards {
  const access = openAccess(config, log);
  const { tls, nats } = config;
  for (const store of [tls, nats.tls]) {
    store?.onFault((error) => log.error({ reason: error.reason, err: error }, 'certificates not read'));
    store?.onExpiring(({ file, at }) =>
      log.warn({ file, expires: at.toISOString() }, 'a certificate expires soon: put a new one in its place'),
    );
  }
  if (access !== undefined && tls === undefined && !LOOPBACK.test(host)) {
    log.warn(
      { host },
      'access tokens come here without TLS, for all on the way to read: see tls in docs/topology.md',
    );
  }
  return { access, tls };
}

/** Throws INVALID_CONFIG, also where this service could not call others. */
function openAccess({ topology, token }: CommonConfig, log: Logger): AccessControl | undefined {
  const { tokens_file: file } = topology.access;
  if (file === null) return undefined;
  const access = new AccessControl(
    file,
    (error) => log.error({ reason: error.reason, err: error }, 'tokens file not read'),
    (caller, method) => log.info({ caller, method }, 'called'),
  );
  const own = token === undefined ? undefined : access.of(token);
  if (own !== undefined && OWN_SCOPES.every((scope) => own.scopes.has(scope))) return access;
  const description = `must hold a token of ${file} with the scopes ${OWN_SCOPES.join(',')}: services call each other with it`;
  throw faulty('INVALID_CONFIG', 'the environment', [{ field: 'POLAR_TOKEN', description }]);
}
