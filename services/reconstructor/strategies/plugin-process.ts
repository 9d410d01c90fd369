// A process that runs one builder plug-in once.
import { lineIn, messageOf, servePlugin } from '../../common/plugins/told.ts';
import { isShortage } from '../../common/shortage.ts';
import type { PlannedCall } from '../domain/plan.ts';

/** What the process is sent. */
export interface PluginWork {
  /** file: URL of the module. */
  readonly url: string;
  readonly options: unknown;
  /** Unset: it is loaded, and plans nothing. */
  readonly calls?: readonly PlannedCall[];
}

/** What it answers. */
export type PluginAnswer =
  | { readonly plan?: unknown }
  | { readonly fault: 'invalid' | 'failed' | 'ofNode'; readonly message: string };

servePlugin((work) => answer(work as PluginWork));

async function answer({ url, options, calls }: PluginWork): Promise<PluginAnswer> {
  let build: unknown;
  try {
    const module = (await import(url)) as { builder?: { build?: unknown } };
    build = module.builder?.build;
  } catch (error) {
    const why = isAbsent(url, error)
      ? 'it is not there'
      : `it cannot be loaded${lineIn(url, error)}: ${messageOf(error)}`;
    return { fault: isShortage(error) ? 'ofNode' : 'invalid', message: why };
  }
  if (typeof build !== 'function') {
    return { fault: 'invalid', message: 'it exports no `builder` with a function `build`' };
  }
  if (calls === undefined) return {};
  try {
    return { plan: await build(calls, options) };
  } catch (error) {
    return { fault: 'failed', message: `it threw${lineIn(url, error)}: ${messageOf(error)}` };
  }
}

/** The module itself, not one that it imports. */
const isAbsent = (url: string, error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  error.code === 'ERR_MODULE_NOT_FOUND' &&
  'url' in error &&
  error.url === url;
