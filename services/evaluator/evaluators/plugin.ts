// An evaluator of the operator's own. What it gives is checked as what a task's command prints, and never believed.
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { EVALUATION_BYTES_MAX } from '../../common/limits.ts';
import { EXTERNAL } from '../../common/specs/catalogue.ts';
import { type EvaluatorPluginConfig, evaluatorPluginConfig } from '../../common/specs/strategies.ts';
import type { EvaluatorContext } from '../context.ts';
import { bounded } from '../domain/evaluation.ts';
import { doingIn } from '../plugins/doing.ts';
import { OwnTime } from '../plugins/own-time.ts';
import { answerOf, evaluatorUrl, failed } from '../plugins/plugin.ts';
import { OnDemand } from '../sandboxes/on-demand.ts';
import { leftMs } from '../sandboxes/sandbox.ts';
import { callsOf, recordsOf } from './call-records.ts';
import type { Evaluation, Evaluator, Verdict } from './evaluator.ts';
import { pluginVerdict } from './plugin-verdict.ts';

export const pluginEvaluator = (path: string): Pick<Evaluator, 'evaluate'> => ({
  async evaluate(ctx, evaluation, signal) {
    const { timeout, options } = configOf(evaluation);
    const url = await evaluatorUrl(ctx.config.node.plugins_dir, path);
    const records = await recordsOf(ctx, evaluation, signal);
    const calls = callsOf(records, `evaluator ${path}`);
    const limitMs = Math.ceil(timeout * 1000);
    const timeoutMs = Math.min(limitMs, leftMs(evaluation.remainingMs));
    const work = { url, calls, context: { ...contextOf(evaluation), options } };
    const json = await answered(ctx, evaluation, path, work, timeoutMs, signal);
    if (json === undefined) {
      if (timeoutMs < limitMs) throw new PolarError('EVALUATION_TIMEOUT', 'the evaluate budget was spent');
      throw failed(path, `it gave nothing in ${timeout} s`);
    }
    return verdictOf(path, json, new Set(records.map(({ callId }) => callId)));
  },
});

const configOf = ({ work }: Evaluation): EvaluatorPluginConfig =>
  checkStrict(evaluatorPluginConfig, work.evaluator?.config ?? {}, 'evaluator.config', 'INVALID_TASK');

const contextOf = ({ ref, work }: Evaluation): Record<string, unknown> => ({
  instruction: work.instruction,
  metadata: work.metadata ?? {},
  session: { id: ref.sessionId, attempt: ref.attempt, taskId: ref.taskId, sampleIndex: ref.sampleIndex },
  outcome: (Outcome[work.outcome] ?? '').toLowerCase(),
});

/** Nothing of what it has begun goes on when it has ended. */
async function answered(
  ctx: EvaluatorContext,
  evaluation: Evaluation,
  path: string,
  work: Parameters<typeof answerOf>[1],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const over = new AbortController();
  await using sandboxes = new OnDemand(ctx, evaluation, AbortSignal.any([signal, over.signal]));
  const time = new OwnTime();
  const doing = doingIn({
    open: async (which) => {
      if (isElsewhere(evaluation)) throw noSandbox();
      return await time.without(() => sandboxes.open(which));
    },
    files: evaluation.work.evaluator?.files ?? [],
    remainingMs: evaluation.remainingMs,
  });
  try {
    return await answerOf(path, work, doing, { time, timeoutMs }, signal);
  } finally {
    over.abort();
  }
}

/** There was no sandbox, and nothing says how another one is to be. */
const isElsewhere = ({ work }: Evaluation): boolean => work.runtimeId === '' && work.runtime === undefined;

/** Which a plug-in may go on from. */
const noSandbox = (): PolarError =>
  new PolarError('INVALID_REQUEST', `sessions of harness ${EXTERNAL} have no sandbox`);

function verdictOf(path: string, json: string, callIds: ReadonlySet<string>): Verdict {
  const { reward, told, traceRewards } = pluginVerdict(json, callIds, `what evaluator ${path} gave`);
  return { reward, evaluation: bounded(told, EVALUATION_BYTES_MAX), traceRewards };
}
