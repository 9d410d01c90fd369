// Evaluators that a task names by path: modules below the node's plugins_dir, each run in a process of its own.
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { PolarError, type Reason } from '../../common/errors.ts';
import { endPlugin, pluginEnd, startPlugin } from '../../common/plugins/child.ts';
import { pluginUrl } from '../../common/plugins/locate.ts';
import type { OwnTime } from './own-time.ts';
import type { PluginAnswer, PluginAsk, PluginReply, PluginWork } from './plugin-process.ts';

const PROGRAM = join(import.meta.dirname, 'plugin-process.ts');
/** Of what it says as it fails; the rest is cut. */
const MESSAGE_CHARS_MAX = 1_000;
/** What it asks before it is answered; above: EVALUATOR_PLUGIN_FAILED. */
const ASKS_WAITING_MAX = 64;
/** What it is told of what it asked, and may go on from. All else is no matter of the plug-in, and ends it. */
const ITS_OWN: readonly Reason[] = ['INVALID_REQUEST', 'UNSAFE_PATH', 'FILE_TOO_LARGE'];

/** Does what a plug-in asks. */
export type Doing = (asked: Pick<PluginAsk, 'sandbox' | 'what'>) => Promise<unknown>;

/** Throws EVALUATOR_PLUGIN_INVALID, SANDBOX_FAILED where the node cannot read it; links may not lead out of the folder. */
export async function evaluatorUrl(pluginsDir: string | undefined, path: string): Promise<string> {
  if (pluginsDir === undefined) throw invalid(path, 'this node has no plugins_dir');
  return await pluginUrl(pluginsDir, path, {
    invalid: (why) => invalid(path, why),
    unread: (why) => ofNode(path, why),
  });
}

/**
 * The JSON of what it gave; undefined: it took longer than `timeoutMs` of its time. Throws EVALUATOR_PLUGIN_INVALID where it cannot be
 * loaded, EVALUATOR_PLUGIN_FAILED where it throws, ends its process or gives nothing, SANDBOX_FAILED where the node has no room for
 * that, or cannot read it, and what `doing` throws that is no matter of the plug-in, be that caught there or not.
 */
export async function answerOf(
  path: string,
  work: PluginWork,
  doing: Doing,
  { time, timeoutMs }: { readonly time: OwnTime; readonly timeoutMs: number },
  signal: AbortSignal,
): Promise<string | undefined> {
  signal.throwIfAborted();
  const child = startPlugin(PROGRAM, timeoutMs);
  const over = new AbortController();
  const late = time.over(timeoutMs, AbortSignal.any([signal, over.signal])).then(() => undefined);
  late.catch(() => {});
  try {
    const answer = await Promise.race([conversation(child, work, doing), late]);
    if (answer === undefined) return undefined;
    if ('json' in answer && answer.json !== undefined) return answer.json;
    const { fault, message } =
      'fault' in answer ? answer : ({ fault: 'failed', message: 'it gave nothing' } as const);
    const told = message.slice(0, MESSAGE_CHARS_MAX);
    throw ERRORS[fault](path, told);
  } finally {
    over.abort();
    endPlugin(child);
  }
}

/** What it asks is done one after the other. */
function conversation(child: ChildProcess, work: PluginWork, doing: Doing): Promise<PluginAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<PluginAnswer>();
  const say = (message: PluginWork | PluginReply): void => {
    // That it ended before it read this is told by its exit; one that could not be started has no channel.
    child.send?.(message, () => {});
  };
  let last = Promise.resolve();
  let waiting = 0;
  child.on('message', (message) => {
    const said = message as PluginAsk | PluginAnswer;
    if (!('id' in said)) return resolve(said);
    if (++waiting > ASKS_WAITING_MAX) {
      return resolve({ fault: 'failed', message: `it asked more than ${ASKS_WAITING_MAX} things at once` });
    }
    last = last.then(async () => {
      try {
        say(await replyTo(said, doing));
      } catch (error) {
        reject(error);
      }
      waiting--;
    });
  });
  void pluginEnd(child).then(({ message, isOfNode }) => {
    resolve({ fault: isOfNode ? 'ofNode' : 'failed', message });
  });
  say(work);
  return promise;
}

async function replyTo({ id, sandbox, what }: PluginAsk, doing: Doing): Promise<PluginReply> {
  try {
    return { id, value: await doing({ sandbox, what }) };
  } catch (error) {
    if (!(error instanceof PolarError) || !ITS_OWN.includes(error.reason)) throw error;
    return { id, error: { reason: error.reason, message: error.message } };
  }
}

const invalid = (path: string, why: string): PolarError =>
  new PolarError('EVALUATOR_PLUGIN_INVALID', `evaluator ${path}: ${why}`);
/** No task is to blame. */
const ofNode = (path: string, why: string): PolarError =>
  new PolarError('SANDBOX_FAILED', `evaluator ${path}: ${why}`);
export const failed = (path: string, why: string): PolarError =>
  new PolarError('EVALUATOR_PLUGIN_FAILED', `evaluator ${path}: ${why}`);

const ERRORS = { invalid, failed, ofNode };
