// Configuration of the evaluator: the topology file and the environment, nothing else.
import type { CommonConfig, Environment } from '../common/config/environment.ts';
import { nodeOf, readCommonConfig } from '../common/config/environment.ts';
import { faulty } from '../common/config/faults.ts';
import type { NodeTopology, Topology } from '../common/config/topology.ts';
import type { FieldFault } from '../common/errors.ts';
import type { Judge } from './judges/judge.ts';

export interface EvaluatorConfig extends CommonConfig {
  readonly node: NodeTopology;
  /** By name. */
  readonly judges: ReadonlyMap<string, Judge>;
}

/** Throws INVALID_CONFIG with every fault. */
export function readConfig(env: Environment): EvaluatorConfig {
  const common = readCommonConfig(env);
  return { ...common, node: nodeOf(common.topology, env), judges: judgesOf(common.topology, env) };
}

function judgesOf({ evaluators }: Topology, env: Environment): ReadonlyMap<string, Judge> {
  const faults: FieldFault[] = [];
  const judges = Object.entries(evaluators.judges).map(([name, given]): [string, Judge] => {
    const { base_url: baseUrl, model, api_key_env: variable } = given;
    const key = variable === undefined ? undefined : env[variable]?.trim();
    if (variable !== undefined && !key) {
      const description = `${variable} is not set for the evaluator`;
      faults.push({ field: `evaluators.judges.${name}.api_key_env`, description });
    }
    return [name, { name, baseUrl, model, key: () => key }];
  });
  if (faults.length > 0) throw faulty('INVALID_CONFIG', 'the judges', faults);
  return new Map(judges);
}
