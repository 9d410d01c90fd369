// The removal of an image that this node has fetched, by its names: one that anybody else has a use for stays.
import { type Engine, EngineError } from './engine.ts';
import type { DockerLayers } from './layers.ts';
import type { PulledImage, PulledImages } from './pulled.ts';

/** Deleting what an image holds. */
const REMOVE_MS = 600_000;

export interface PullParts {
  readonly engine: Engine;
  readonly pulled: PulledImages;
  readonly layers: DockerLayers;
}

/** False: it stays. Throws where the engine cannot be asked. */
export const removePulled = (parts: PullParts, image: PulledImage): Promise<boolean> =>
  parts.pulled.removing(() => remove(parts, image));

async function remove(parts: PullParts, { id, names }: PulledImage): Promise<boolean> {
  const { engine, pulled, layers } = parts;
  for (const name of names) if ((await idOf(engine, name)) !== id) pulled.forget(name);
  const ours = pulled.idle().find((one) => one.id === id)?.names ?? [];
  if (ours.length === 0 || (await isUsed(engine, id, ours.length))) return false;
  // What was prepared on it would keep its files on the disk.
  if (!(await layers.removeOn(id))) return false;
  for (const name of ours) {
    if (!(await removed(engine, name))) return false;
    pulled.forget(name);
  }
  return true;
}

/** Somebody has given it another name, or a container of whomever is made of it. */
async function isUsed(engine: Engine, id: string, names: number): Promise<boolean> {
  const { RepoTags } = await engine.call<{ RepoTags: readonly string[] | null }>('GET', `/images/${id}/json`);
  if ((RepoTags ?? []).length > names) return true;
  const filters = encodeURIComponent(JSON.stringify({ ancestor: [id] }));
  const all = await engine.call<readonly unknown[]>('GET', `/containers/json?all=true&filters=${filters}`);
  return all.length > 0;
}

/** Undefined: there is none of that name. */
async function idOf(engine: Engine, name: string): Promise<string | undefined> {
  try {
    return (await engine.call<{ Id: string }>('GET', `/images/${encodeURIComponent(name)}/json`)).Id;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return undefined;
    throw error;
  }
}

/** False: the engine refuses, as it is in use. */
async function removed(engine: Engine, name: string): Promise<boolean> {
  try {
    await engine.call('DELETE', `/images/${encodeURIComponent(name)}`, { limitMs: REMOVE_MS });
  } catch (error) {
    if (!(error instanceof EngineError && [404, 409].includes(error.status))) throw error;
    return error.status === 404;
  }
  return true;
}
