// Configuration of the scheduler: the topology file and the environment, nothing else.
import type { CommonConfig, Environment } from '../common/config/environment.ts';
import { readCommonConfig } from '../common/config/environment.ts';

export type SchedulerConfig = CommonConfig;

/** Throws INVALID_CONFIG with every fault. */
export function readConfig(env: Environment): SchedulerConfig {
  return readCommonConfig(env);
}
