// Configuration of the reconstructor: the topology file and the environment, nothing else.
import { type CommonConfig, type Environment, readCommonConfig } from '../common/config/environment.ts';

export type ReconstructorConfig = CommonConfig;

/** Throws INVALID_CONFIG with every fault. */
export function readConfig(env: Environment): ReconstructorConfig {
  return readCommonConfig(env);
}
