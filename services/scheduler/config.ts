// Configuration of the scheduler: the topology file and the environment, nothing else.
import { z } from 'zod';
import type { CommonConfig, Environment } from '../common/config/environment.ts';
import { readCommonConfig } from '../common/config/environment.ts';
import { checkStrict, faulty } from '../common/config/faults.ts';
import { publicUrl, schemeOf } from '../common/config/public-url.ts';

export interface SchedulerConfig extends CommonConfig {
  /** Key of the callbacks' signatures: the variable that `rollout.callback_secret_env` names. */
  readonly callbackSecret?: string;
}

/** What stands in for the topology's `rollout`, so that a second scheduler needs no file of its own. */
const overrides = z.object({
  POLAR_ROLLOUT_PORT: z
    .string()
    .regex(/^\d+$/, 'must be a port')
    .transform(Number)
    .pipe(z.int().min(1).max(65_535))
    .optional(),
  POLAR_ROLLOUT_PUBLIC_URL: z
    .string()
    .regex(/^https?:\/\/[^/\s]+\/?$/, 'must be an http(s) URL of a host')
    .optional(),
});

/** Throws INVALID_CONFIG with every fault. */
export function readConfig(env: Environment): SchedulerConfig {
  const config = readCommonConfig(env);
  const given = checkStrict(overrides, withoutEmpty(env), 'the environment', 'INVALID_CONFIG');
  const { rollout } = config.topology;
  const { POLAR_ROLLOUT_PORT: port = rollout.port, POLAR_ROLLOUT_PUBLIC_URL: url } = given;
  const callbackSecret = secretOf(rollout.callback_secret_env, env);
  const told = url ?? (port === rollout.port ? rollout.public_url : undefined);
  if (told?.startsWith('http:') && config.topology.tls !== undefined) {
    const description = 'must be https://, as the mesh has TLS (tls)';
    throw faulty('INVALID_CONFIG', 'the environment', [{ field: 'POLAR_ROLLOUT_PUBLIC_URL', description }]);
  }
  const at = { ...rollout, port, public_url: told };
  return {
    ...config,
    ...(callbackSecret !== undefined && { callbackSecret }),
    topology: {
      ...config.topology,
      rollout: { ...at, public_url: publicUrl(at, schemeOf(config.topology)) },
    },
  };
}

/** A variable that is empty is not set. */
const withoutEmpty = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));

function secretOf(name: string | undefined, env: Environment): string | undefined {
  if (name === undefined) return undefined;
  const secret = env[name];
  if (secret !== undefined && secret !== '') return secret;
  throw faulty('INVALID_CONFIG', 'the environment', [
    { field: name, description: 'must hold the key of callbacks: rollout.callback_secret_env names it' },
  ]);
}
