// Builders that a task names by path: modules below the folder that the operator chose, each run in a process of its own.
import type { ChildProcess } from 'node:child_process';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { sleep } from '../../common/clock.ts';
import { checkEach, checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { endPlugin, pluginEnd, startPlugin } from '../../common/plugins/child.ts';
import { pluginUrl } from '../../common/plugins/locate.ts';
import type { Plan, PlannedCall } from '../domain/plan.ts';
import type { PluginAnswer, PluginWork } from './plugin-process.ts';

const PROGRAM = join(import.meta.dirname, 'plugin-process.ts');
/** Of what it says as it fails; the rest is cut. */
const MESSAGE_CHARS_MAX = 1_000;

const planShape = z.strictObject({ traces: z.array(z.unknown()), masks: z.array(z.unknown()).optional() });
const traceShape = z.strictObject({ calls: z.array(z.unknown()).min(1) });
const maskShape = z.strictObject({
  call: z.string(),
  reason: z.string(),
  start: z.number().optional(),
  end: z.number().optional(),
});
const callIdShape = z.string();

/** The file: URL of a plug-in. Throws BUILDER_PLUGIN_INVALID, INTERNAL where the machine cannot read it; links may not lead out of the folder. */
export async function builderUrl(pluginsDir: string | undefined, path: string): Promise<string> {
  if (pluginsDir === undefined) throw invalid(path, 'reconstructor.plugins_dir is not set');
  return await pluginUrl(pluginsDir, path, {
    invalid: (why) => invalid(path, why),
    unread: (why) => ofNode(path, why),
  });
}

/**
 * What the plug-in plans, in its shape; whether it keeps the laws is not looked at here. Throws BUILDER_PLUGIN_INVALID
 * where it cannot be loaded, BUILDER_PLUGIN_FAILED where it throws, takes longer than `timeoutMs`, needs more memory than
 * it may have, or gives back something else, INTERNAL where the machine has no room for its process, or cannot read it.
 */
export async function planOf(
  url: string,
  calls: readonly PlannedCall[],
  options: unknown,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Plan> {
  const plan = await saidBy({ url, options, calls }, timeoutMs, signal);
  return checkPlan(plan, calls.length, `the plan of builder ${nameOf(url)}`);
}

/** Loads the plug-in, as each of its builds does. Throws as `planOf` does. */
export async function loadPlugin(url: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
  await saidBy({ url, options: undefined }, timeoutMs, signal);
}

const nameOf = (url: string): string => fileURLToPath(url).split(sep).at(-1) ?? url;

async function saidBy(work: PluginWork, timeoutMs: number, signal: AbortSignal): Promise<unknown> {
  const answer = await answerOf(work, timeoutMs, signal);
  if (!('fault' in answer)) return answer.plan;
  const message = answer.message.slice(0, MESSAGE_CHARS_MAX);
  throw ERRORS[answer.fault](nameOf(work.url), message);
}

/** List by list: one may be long, and this process has others to serve. `calls`: how many it is a plan for. */
function checkPlan(given: unknown, calls: number, what: string): Plan {
  const reason = 'BUILDER_PLUGIN_FAILED';
  const plan = checkStrict(planShape, given, what, reason);
  const { length } = plan.traces;
  if (length > calls) {
    throw new PolarError(reason, `${what} has ${length} traces, more than the ${calls} calls that there are`);
  }
  checkEach(traceShape, plan.traces, 'traces', what, reason);
  const { traces, masks = [] } = plan as Plan;
  for (const [i, { calls: ids }] of traces.entries()) {
    // Most are short and good. Not by `every`, which leaves out what an array with holes lacks.
    if (ids.findIndex((id) => typeof id !== 'string') < 0) continue;
    checkEach(callIdShape, ids, `traces[${i}].calls`, what, reason);
  }
  checkEach(maskShape, masks, 'masks', what, reason);
  return { traces, masks };
}

async function answerOf(work: PluginWork, timeoutMs: number, signal: AbortSignal): Promise<PluginAnswer> {
  signal.throwIfAborted();
  const child = startPlugin(PROGRAM, timeoutMs);
  const over = new AbortController();
  const late = sleep(timeoutMs, AbortSignal.any([signal, over.signal])).then((): PluginAnswer => {
    signal.throwIfAborted();
    return { fault: 'failed', message: `it gave nothing in ${timeoutMs} ms` };
  });
  try {
    return await Promise.race([said(child, work), late]);
  } finally {
    over.abort();
    endPlugin(child);
  }
}

function said(child: ChildProcess, work: PluginWork): Promise<PluginAnswer> {
  const { promise, resolve } = Promise.withResolvers<PluginAnswer>();
  child.once('message', (answer) => resolve(answer as PluginAnswer));
  void pluginEnd(child).then(({ message, isOfNode }) => {
    resolve({ fault: isOfNode ? 'ofNode' : 'failed', message });
  });
  // That it ended before it read this is told by its exit; one that could not be started has no channel.
  child.send?.(work, () => {});
  return promise;
}

const invalid = (path: string, why: string): PolarError =>
  new PolarError('BUILDER_PLUGIN_INVALID', `builder ${path}: ${why}`);
const failed = (path: string, why: string): PolarError =>
  new PolarError('BUILDER_PLUGIN_FAILED', `builder ${path}: ${why}`);
/** No task is to blame. */
const ofNode = (path: string, why: string): PolarError =>
  new PolarError('INTERNAL', `builder ${path}: ${why}`);

const ERRORS = { invalid, failed, ofNode };
