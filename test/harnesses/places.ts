// The kinds of sandboxes that harnesses are run in.
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import type { MeshOptions } from '../support/mesh.ts';
import { IMAGES, makeNewerDebian, NEWER_IMAGE } from '../support/newer-debian.ts';

interface Runtime {
  readonly backend: string;
  readonly image?: string;
}

export interface Place {
  /** The backend's name. */
  readonly name: string;
  /** Keys of the task's runtime. */
  readonly runtime: Runtime;
  /** The same for harnesses that need a newer Python than this machine's. */
  readonly newer?: Runtime;
  /** What its mesh has. */
  readonly mesh: Pick<MeshOptions, 'node' | 'path'>;
}

export const PLACES = ['bubblewrap', 'apptainer', 'docker', 'podman'] as const;
export type PlaceName = (typeof PLACES)[number];

/** With an engine of its own where the backend needs one, for as long as the stack. */
export async function openPlace(name: PlaceName, stack: AsyncDisposableStack): Promise<Place> {
  const debian = await makeNewerDebian();
  const newer = { backend: name, image: NEWER_IMAGE };
  const node = { images_dir: IMAGES };
  if (name === 'bubblewrap') return { name, runtime: { backend: name }, newer, mesh: { node } };
  if (name === 'apptainer') {
    if (withoutApptainer !== undefined) throw new Error(withoutApptainer);
    return { name, runtime: { backend: name }, newer, mesh: { path: pathWithApptainer, node } };
  }
  // Loaded only where they are wanted: they look for an engine, and install Docker.
  const { PROGRAMS_IMAGE } = await import('../support/container-engine.ts');
  const { ENGINES, nodeWith } = await import('../support/engines.ts');
  const kind = ENGINES.find(({ backend, mapped }) => backend === name && mapped === (name === 'docker'));
  if (kind === undefined) throw new Error(`there is no ${name} here`);
  const engine = stack.use(await kind.start());
  await engine.importFolder(debian, NEWER_IMAGE);
  const runtime = { backend: name, image: PROGRAMS_IMAGE };
  return { name, runtime, newer, mesh: { node: nodeWith(kind, engine) } };
}
