// Tasks whose harness runs elsewhere: nothing is prepared or started for them, so that what says how is refused.
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { EXTERNAL, listed, NEEDS_NO_SANDBOX } from './catalogue.ts';
import type { Faults } from './faults-of.ts';
import { outcomeStrategyOf, PLUGIN_PATH } from './strategies.ts';

/** Largest reward that who closes a session may give, above or below 0. */
export const REWARD_MAX = 1_000_000;

export const isExternal = ({ harness }: Pick<TaskSpec, 'harness'>): boolean => harness?.name === EXTERNAL;

export function checkExternal(spec: TaskSpec, faults: Faults): void {
  const { harness, runtime, evaluator, maxRunningSessions } = spec;
  const refuse = (isGiven: boolean, field: string, why: string): void => {
    faults.require(!isGiven, field, `is not for harness ${EXTERNAL}: ${why}`);
  };
  refuse(runtime !== undefined, 'runtime', 'its sessions have no sandbox');
  const outcome = outcomeStrategyOf(evaluator);
  const field = evaluator?.strategy === outcome ? 'evaluator.strategy' : 'evaluator.config.outcome.strategy';
  const isPlugin = PLUGIN_PATH.test(outcome);
  const inSandbox = outcome !== '' && !isPlugin && !NEEDS_NO_SANDBOX.some((name) => name === outcome);
  refuse(
    inSandbox,
    field,
    `${outcome} grades what is left in a sandbox; ${listed(NEEDS_NO_SANDBOX)} and evaluators of your own need none`,
  );
  const files = evaluator?.files ?? [];
  refuse(files.length > 0, 'evaluator.files', 'its sessions have no sandbox to put them in');
  refuse(maxRunningSessions > 0, 'max_running_sessions', 'who opens its sessions says how many run');
  if (harness === undefined) return;
  const given = {
    settings: Object.keys(harness.settings ?? {}),
    env: Object.keys(harness.env),
    command: harness.command === undefined ? [] : ['command'],
    mcp_servers: harness.mcpServers,
    skills: harness.skills,
    artifacts: harness.artifacts,
  };
  for (const [name, parts] of Object.entries(given)) {
    refuse(parts.length > 0, `harness.${name}`, 'who opens a session starts its harness');
  }
}
