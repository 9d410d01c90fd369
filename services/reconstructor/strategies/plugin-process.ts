// A process that runs one builder plug-in once: what it breaks is its own. A thread would not do: one large allocation in
// it ends the whole process, whatever limit the thread has.
import process from 'node:process';
import type { PlannedCall } from '../domain/plan.ts';

/** What the process is sent. */
export interface PluginWork {
  /** file: URL of the module. */
  readonly url: string;
  readonly options: unknown;
  readonly calls: readonly PlannedCall[];
}

/** What it answers. */
export type PluginAnswer =
  | { readonly plan: unknown }
  | { readonly fault: 'invalid' | 'failed'; readonly message: string };

// Nobody waits any more: it ends with all that the plug-in started, its group.
process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));
/** Modules that speak to a parent process find none: what this one is told is the answer. */
const send = process.send?.bind(process);
delete process.send;
process.once('message', (work) => {
  void answer(work as PluginWork).then((told) => send?.(told, () => process.exit()));
});

async function answer({ url, options, calls }: PluginWork): Promise<PluginAnswer> {
  let build: unknown;
  try {
    const module = (await import(url)) as { builder?: { build?: unknown } };
    build = module.builder?.build;
  } catch (error) {
    return { fault: 'invalid', message: `it cannot be loaded${lineIn(url, error)}: ${messageOf(error)}` };
  }
  if (typeof build !== 'function') {
    return { fault: 'invalid', message: 'it exports no `builder` with a function `build`' };
  }
  try {
    return { plan: await build(calls, options) };
  } catch (error) {
    return { fault: 'failed', message: `it threw${lineIn(url, error)}: ${messageOf(error)}` };
  }
}

/** Where in the module: who wrote it sees nothing of what it prints. */
function lineIn(url: string, error: unknown): string {
  const stack = error instanceof Error ? String(error.stack) : '';
  const [, behind] = stack.split(`${url}:`, 2);
  const [line] = /^\d+/.exec(behind ?? '') ?? [];
  return line === undefined ? '' : ` in line ${line}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
