// The access control of a service, as the topology says.
import type { CommonConfig } from '../config/environment.ts';
import { faulty } from '../config/faults.ts';
import type { Logger } from '../logger.ts';
import { AccessControl } from './access-control.ts';
import type { Scope } from './scopes.ts';

/** What services ask of each other. */
const OWN_SCOPES: readonly Scope[] = ['node', 'read'];

/** Undefined: whoever reaches the port may call. Throws INVALID_CONFIG, also where this service could not call others. */
export function openAccess({ topology, token }: CommonConfig, log: Logger): AccessControl | undefined {
  const { tokens_file: file } = topology.access;
  if (file === null) return undefined;
  const access = new AccessControl(file, (error) =>
    log.error({ reason: error.reason, err: error }, 'tokens file not read'),
  );
  const own = token === undefined ? undefined : access.of(token);
  if (own !== undefined && OWN_SCOPES.every((scope) => own.scopes.has(scope))) return access;
  const description = `must hold a token of ${file} with the scopes ${OWN_SCOPES.join(',')}: services call each other with it`;
  throw faulty('INVALID_CONFIG', 'the environment', [{ field: 'POLAR_TOKEN', description }]);
}
