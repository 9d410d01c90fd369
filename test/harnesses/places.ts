// The kinds of sandboxes that harnesses are run in.
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import type { MeshOptions } from '../support/mesh.ts';

export interface Place {
  /** The backend's name. */
  readonly name: string;
  /** Keys of the task's runtime. */
  readonly runtime: { readonly backend: string; readonly image?: string };
  /** What its mesh has. */
  readonly mesh: Pick<MeshOptions, 'node' | 'path'>;
}

export const PLACES = ['bubblewrap', 'apptainer', 'docker', 'podman'] as const;
export type PlaceName = (typeof PLACES)[number];

/** With an engine of its own where the backend needs one, for as long as the stack. */
export async function openPlace(name: PlaceName, stack: AsyncDisposableStack): Promise<Place> {
  if (name === 'bubblewrap') return { name, runtime: { backend: name }, mesh: {} };
  if (name === 'apptainer') {
    if (withoutApptainer !== undefined) throw new Error(withoutApptainer);
    return { name, runtime: { backend: name }, mesh: { path: pathWithApptainer } };
  }
  // Loaded only where they are wanted: they look for an engine, and install Docker.
  const { PROGRAMS_IMAGE } = await import('../support/container-engine.ts');
  const { ENGINES, nodeWith } = await import('../support/engines.ts');
  const kind = ENGINES.find(({ backend, mapped }) => backend === name && mapped === (name === 'docker'));
  if (kind === undefined) throw new Error(`there is no ${name} here`);
  const engine = stack.use(await kind.start());
  return { name, runtime: { backend: name, image: PROGRAMS_IMAGE }, mesh: { node: nodeWith(kind, engine) } };
}
