// Backends of the operator's own: modules below the node's plugins_dir that the topology names, loaded at the start.
import { realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { abortable, settledWithin, withTimeout } from '../../common/clock.ts';
import { checkStrict } from '../../common/config/faults.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { STOP_GRACE_MS } from '../../common/limits.ts';
import type { ProxyConnect } from '../host/forward.ts';
import type { Backend, BackendState } from './backend.ts';

/** What a plug-in gets. */
export interface PluginNode {
  /** Folder of the node's data. */
  readonly dataDir: string;
  /** To the node's LLM proxy, for what comes out of a sandbox of that session. */
  readonly proxy: ProxyConnect;
  /** Another backend of this node, to build on. Throws BACKEND_UNAVAILABLE with the reason. */
  builtIn(name: string): Backend;
}

/** All of a Backend but its name, which is the module's path. */
type PluginBackend = Omit<Backend, 'name' | 'fetches' | 'builtOn'> &
  Partial<Pick<Backend, 'fetches'> & AsyncDisposable>;

/** What a module exports as `openBackend`. */
export type OpenBackend = (node: PluginNode) => Promise<PluginBackend>;

export interface OpenedPlugin extends AsyncDisposable {
  readonly state: BackendState;
}

/** How long a plug-in may take; what it does later is not waited for. */
const TIMES_MS = {
  /** Then it counts as failed, and is closed when it comes. */
  open: 30_000,
  close: STOP_GRACE_MS,
};

const callable = z.custom<(...args: never[]) => unknown>((value) => typeof value === 'function', {
  message: 'must be a function',
});
const shape = z.looseObject({
  isolates: z.boolean(),
  fetches: z.boolean().optional(),
  gpus: z.enum(['from_creation', 'by_command']).optional(),
  images: callable,
  keep: callable.optional(),
  create: callable,
});
const names = z.array(z.string());

/** One that cannot be opened is not offered, with the reason. */
export async function openPlugin(
  pluginsDir: string | undefined,
  path: string,
  node: PluginNode,
  timesMs = TIMES_MS,
): Promise<OpenedPlugin> {
  const builtOn = new Set<string>();
  const opening = openOf(pluginsDir, path, noting(builtOn, node));
  try {
    const made = await abortable(opening, withTimeout(timesMs.open));
    checkStrict(shape, made, 'openBackend', 'BACKEND_UNAVAILABLE');
    imagesOf(made);
    return {
      state: { name: path, isolates: made.isolates, backend: backendOf(path, made, builtOn) },
      [Symbol.asyncDispose]: () => settledWithin(close(made), timesMs.close),
    };
  } catch (error) {
    void opening.then(close).catch(() => {});
    const { message } = asPolarError(error);
    const unavailable = new PolarError('BACKEND_UNAVAILABLE', `plug-in ${path}: ${message}`);
    return { state: { name: path, isolates: false, unavailable }, async [Symbol.asyncDispose]() {} };
  }
}

async function openOf(
  pluginsDir: string | undefined,
  path: string,
  node: PluginNode,
): ReturnType<OpenBackend> {
  if (pluginsDir === undefined) throw new Error('this node has no plugins_dir');
  const module = (await import(pathToFileURL(await fileOf(pluginsDir, path)).href)) as {
    openBackend?: OpenBackend;
  };
  if (typeof module.openBackend !== 'function') throw new Error('it exports no function `openBackend`');
  return await module.openBackend(node);
}

/** Its sandboxes may be those of another backend, and stay as long as these do. */
const noting = (builtOn: Set<string>, node: PluginNode): PluginNode => ({
  ...node,
  builtIn(name) {
    const backend = node.builtIn(name);
    builtOn.add(name);
    return backend;
  },
});

function backendOf(name: string, made: PluginBackend, builtOn: ReadonlySet<string>): Backend {
  const { isolates, layers, gpus, fetches = false } = made;
  return {
    ...{ name, isolates, fetches },
    get builtOn() {
      return [...builtOn];
    },
    // Heartbeats ask for them: a fault of one backend may not keep the others from being told.
    images() {
      try {
        return imagesOf(made);
      } catch {
        return [];
      }
    },
    create: (spec, signal) => made.create(spec, signal),
    ...(gpus && { gpus }),
    ...(made.keep && { keep: made.keep.bind(made) }),
    ...(layers && { layers }),
  };
}

/** Throws where it gives anything but a list of names. */
function imagesOf(made: PluginBackend): string[] {
  const given: unknown = made.images();
  if (given instanceof Promise) given.catch(() => {});
  return checkStrict(names, given, 'images()', 'BACKEND_UNAVAILABLE');
}

async function close(made: Partial<AsyncDisposable> | undefined): Promise<void> {
  await made?.[Symbol.asyncDispose]?.();
}

/** Links may not lead out of the folder. */
async function fileOf(pluginsDir: string, path: string): Promise<string> {
  const folder = await realpath(pluginsDir);
  const file = await realpath(join(folder, path));
  if (file.startsWith(folder + sep)) return file;
  throw new Error('it lies outside of plugins_dir');
}
