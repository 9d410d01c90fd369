// Work that a session's state implies. It can be made again at any time from committed state.
import { create } from '@bufbuild/protobuf';
import {
  type RuntimeSpec,
  RuntimeSpecSchema,
  type Sampling,
  type TaskSpec,
} from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import {
  type Capability,
  CapabilitySchema,
  type Work,
  WorkSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { ASKS_JUDGE, GRADES_IN_SANDBOX } from '../../common/specs/catalogue.ts';
import { outcomeStrategyOf, PLUGIN_PATH } from '../../common/specs/strategies.ts';
import { budgetMs, leaseMs, type Stage } from './budgets.ts';
import { refOf, sessionOf } from './session.ts';

/** The work of one stage. `spec` holds the file contents. */
export function workOf(record: SessionRecord, spec: TaskSpec, stage: Stage): Work {
  return create(WorkSchema, { ref: refOf(record), kind: kindOf(record, spec, stage) });
}

/** What opens the LLM proxy to who works on a session elsewhere; `digest` is that of its key. */
export function capabilityOf(
  record: SessionRecord,
  spec: TaskSpec,
  digest: string,
  expireMs: number,
): Capability {
  const { sampling, harness } = spec;
  return create(CapabilitySchema, {
    ref: refOf(record),
    digest,
    expireMs: BigInt(expireMs),
    modelName: harness?.modelName ?? '',
    modelPools: harness?.modelPools ?? [],
    ...(sampling && { sampling: samplingOf(sampling, sessionOf(record).sampleIndex) }),
  });
}

/** Whether the work of a stage carries uploads, so that an outline of the spec is not enough. */
export const needsUploads = (stage: Stage, { harness }: TaskSpec): boolean =>
  stage === 'prepare' || stage === 'evaluate' || (stage === 'run' && (harness?.skills.length ?? 0) > 0);

function kindOf(record: SessionRecord, spec: TaskSpec, stage: Stage): NonNullable<WorkInit['kind']> {
  const timeoutMs = BigInt(budgetMs(spec, stage));
  const { runtimeId, proxyUrl } = record;
  switch (stage) {
    case 'prepare':
      return {
        case: 'prepare',
        value: {
          ...(spec.runtime && { runtime: gradesInSandbox(spec) ? spec.runtime : forRun(spec.runtime) }),
          timeoutMs,
          leaseMs: BigInt(leaseMs(spec)),
          ...(gradesInSandbox(spec) && { evaluateTimeoutMs: BigInt(budgetMs(spec, 'evaluate')) }),
        },
      };
    case 'run':
      return {
        case: 'run',
        value: {
          runtimeId,
          proxyUrl,
          timeoutMs,
          instruction: spec.instruction,
          ...(spec.harness && { harness: spec.harness }),
          ...(spec.sampling && {
            sampling: samplingOf(spec.sampling, sessionOf(record).sampleIndex),
          }),
        },
      };
    case 'close':
      return {
        case: 'close',
        value: {
          ...(record.closed && { outcome: record.closed.outcome }),
          ...(record.closed?.failure && { failure: record.closed.failure }),
          rewardedCalls: Object.keys(record.closed?.traceRewards ?? {}),
        },
      };
    case 'build':
      return {
        case: 'build',
        value: {
          ...(spec.builder && { builder: spec.builder }),
          ...(record.ran?.calls && { calls: record.ran.calls }),
          timeoutMs,
        },
      };
    case 'evaluate':
      return {
        case: 'evaluate',
        value: {
          runtimeId,
          ...(spec.evaluator && { evaluator: spec.evaluator }),
          ...(spec.runtime && { runtime: spec.runtime }),
          ...(record.ran && { outcome: record.ran.outcome }),
          ...(record.ran?.calls && { calls: record.ran.calls }),
          ...((asksJudge(spec) || isPlugin(spec)) && { instruction: spec.instruction }),
          ...(isPlugin(spec) && spec.metadata && { metadata: spec.metadata }),
          timeoutMs,
        },
      };
  }
}

type WorkInit = NonNullable<Parameters<typeof create<typeof WorkSchema>>[1]>;

/** Its evaluation's sandbox may be made while it runs. */
const gradesInSandbox = ({ evaluator }: TaskSpec): boolean =>
  GRADES_IN_SANDBOX.some((name) => name === outcomeStrategyOf(evaluator));

const asksJudge = ({ evaluator }: TaskSpec): boolean =>
  ASKS_JUDGE.some((name) => name === evaluator?.strategy);

/** It may look at all of the task. */
const isPlugin = ({ evaluator }: TaskSpec): boolean => PLUGIN_PATH.test(outcomeStrategyOf(evaluator));

/** The evaluator's own steps are not sent along where they are not used. */
const forRun = ({ evalPrepare: _, ...runtime }: RuntimeSpec): RuntimeSpec =>
  create(RuntimeSpecSchema, runtime);

const samplingOf = (sampling: Sampling, sampleIndex: number): Sampling =>
  sampling.seedBase === undefined ? sampling : { ...sampling, seedBase: sampling.seedBase + sampleIndex };
