// What a task says beside the configuration of an evaluator that grades in the sandbox of the run, and has to fit to it.
import type { EvaluatorSpec, RuntimeSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { Faults } from './faults-of.ts';
import { clearingFault, type HarborConfig, harborConfig, resultFileConfig } from './live-grading.ts';
import { checkFiles } from './runtime-spec.ts';
import { PLUGIN_PATH } from './strategies.ts';

export interface Grading {
  readonly strategy: string;
  readonly config: unknown;
  /** Of its configuration. */
  readonly field: string;
}

/** What finds the outcome: the evaluator itself, or the one that a rubric names. */
export function outcomeGrading({ strategy, config }: EvaluatorSpec): Grading {
  if (strategy !== 'rubric') return { strategy, config, field: 'evaluator.config' };
  const outcome = config?.['outcome'] as { strategy?: unknown; config?: unknown } | null | undefined;
  const found = { strategy: String(outcome?.strategy), config: outcome?.config };
  return { ...found, field: 'evaluator.config.outcome.config' };
}

/** Of a configuration that is as its schema wants it; what is wrong there is told there. */
export function checkLiveGrading(evaluator: EvaluatorSpec, runtime: RuntimeSpec, faults: Faults): void {
  const { strategy, config, field } = outcomeGrading(evaluator);
  const isHarbor = strategy === 'harbor';
  checkFiles(evaluator.files, 'evaluator.files', faults);
  const none = evaluator.files.length === 0;
  const takesFiles = isHarbor || PLUGIN_PATH.test(strategy);
  faults.require(none || takesFiles, 'evaluator.files', 'are for evaluator harbor and plug-ins alone');
  const cleared = isHarbor ? harborConfig.safeParse(config ?? {}).data : undefined;
  if (isHarbor) checkTests(evaluator, cleared, faults);
  const written = strategy === 'verifier_result_file' ? resultFileConfig.safeParse(config).data : undefined;
  const places = {
    tests_target: cleared?.tests_target,
    verifier_dir: cleared?.verifier_dir,
    result_file: written?.result_file,
  };
  for (const [key, path] of Object.entries(places)) {
    if (path === undefined) continue;
    const fault = clearingFault(path, runtime.backend !== 'process', runtime.workdir);
    faults.require(fault === undefined, `${field}.${key}`, fault ?? '');
  }
}

/** `config`: undefined where that is wrong. */
function checkTests({ files }: EvaluatorSpec, config: HarborConfig | undefined, faults: Faults): void {
  const targets = files.map(({ target }) => target);
  if (!faults.require(targets.length > 0, 'evaluator.files', 'must hold the tests: tests_dir in a task file'))
    return;
  const found = config === undefined || config.test_command !== undefined || targets.includes('test.sh');
  faults.require(found, 'evaluator.files', 'have no test.sh, and test_command is not set');
}
