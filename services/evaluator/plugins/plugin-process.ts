// A process that runs one evaluator plug-in once. What it asks of sandboxes is done by the evaluator, which it asks by messages.
import process from 'node:process';
import { lineIn, messageOf, servePlugin } from '../../common/plugins/told.ts';
import { isShortage } from '../../common/shortage.ts';

/** What the process is sent first. */
export interface PluginWork {
  /** file: URL of the module. */
  readonly url: string;
  /** Handed to it. */
  readonly context: Readonly<Record<string, unknown>>;
  /** JSON, one call each. */
  readonly calls: readonly string[];
}

/** What it asks meanwhile. */
export interface PluginAsk {
  readonly id: number;
  readonly sandbox: 'live' | 'fresh';
  /** Checked where it is done. */
  readonly what: unknown;
}

/** What it is answered. */
export type PluginReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: { readonly reason: string; readonly message: string } };

/** What it says last; `json` undefined: the plug-in gave nothing. */
export type PluginAnswer =
  | { readonly json: string | undefined }
  | { readonly fault: 'invalid' | 'failed' | 'ofNode'; readonly message: string };

const waiting = new Map<number, PromiseWithResolvers<unknown>>();
const tell = servePlugin((work) => answer(work as PluginWork));
process.on('message', (message) => {
  const reply = message as PluginReply | PluginWork;
  if (!('id' in reply)) return;
  const asked = waiting.get(reply.id);
  waiting.delete(reply.id);
  if ('value' in reply) return asked?.resolve(reply.value);
  asked?.reject(Object.assign(new Error(reply.error.message), { reason: reply.error.reason }));
});

let asks = 0;

function ask(sandbox: PluginAsk['sandbox'], what: unknown): Promise<unknown> {
  const id = ++asks;
  const asked = Promise.withResolvers<unknown>();
  waiting.set(id, asked);
  tell({ id, sandbox, what } satisfies PluginAsk);
  return asked.promise;
}

const handleOf = (sandbox: PluginAsk['sandbox']) => ({
  exec: (command: unknown, options: object = {}) => ask(sandbox, { ...options, do: 'exec', command }),
  readFile: (path: unknown) => ask(sandbox, { do: 'readFile', path }),
  writeFile: (path: unknown, content: unknown, options: object = {}) =>
    ask(sandbox, { ...options, do: 'writeFile', path, content }),
  putFiles: (path: unknown) => ask(sandbox, { do: 'putFiles', path }),
});

async function answer({ url, context, calls }: PluginWork): Promise<PluginAnswer> {
  let evaluate: unknown;
  let evaluator: { evaluate?: unknown } | undefined;
  try {
    ({ evaluator } = (await import(url)) as { evaluator?: { evaluate?: unknown } });
    evaluate = evaluator?.evaluate;
  } catch (error) {
    const message = `it cannot be loaded${lineIn(url, error)}: ${messageOf(error)}`;
    return { fault: isShortage(error) ? 'ofNode' : 'invalid', message };
  }
  if (typeof evaluate !== 'function') {
    return { fault: 'invalid', message: 'it exports no `evaluator` with a function `evaluate`' };
  }
  try {
    const about = { ...context, calls: calls.map((line) => JSON.parse(line) as unknown) };
    const given: unknown = await evaluate.call(evaluator, {
      ...about,
      sandbox: handleOf('live'),
      fresh: handleOf('fresh'),
    });
    return { json: JSON.stringify(given) };
  } catch (error) {
    return { fault: 'failed', message: `it threw${lineIn(url, error)}: ${messageOf(error)}` };
  }
}
