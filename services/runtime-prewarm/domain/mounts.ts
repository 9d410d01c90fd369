// Which host folders a command may see, and where they appear inside.
import { PolarError } from '../../common/errors.ts';
import { partsOf } from './paths.ts';

/** A named host folder whose content may be shown to sandboxes. */
export interface MountRoot {
  readonly name: string;
  /** Real path. */
  readonly path: string;
}

export interface ResolvedMount {
  readonly root: string;
  /** Below the root; empty for the root itself. */
  readonly below: string;
  /** Real host path. */
  readonly source: string;
  readonly target: string;
}

/** Targets that would hide what a sandbox itself is made of. */
const RESERVED = ['/', '/proc', '/dev', '/usr', '/etc', '/polar'];

/** The rule: the real path of the source lies in one of the roots. Throws UNSAFE_PATH. */
export function resolveMount(
  source: string,
  realSource: string,
  target: string,
  roots: readonly MountRoot[],
): ResolvedMount {
  const parts = partsOf(target);
  const clean = `/${parts.join('/')}`;
  if (RESERVED.includes(clean) || parts[0] === 'proc' || parts[0] === 'dev') {
    throw new PolarError('UNSAFE_PATH', `nothing can be mounted at ${clean}`);
  }
  const root = roots.find(({ path }) => realSource === path || realSource.startsWith(`${path}/`));
  if (root === undefined) {
    const allowed = roots.map(({ name, path }) => `${name} (${path})`).join(', ');
    throw new PolarError('UNSAFE_PATH', `${source} cannot be mounted; only folders below ${allowed} can`);
  }
  return {
    root: root.name,
    below: realSource.slice(root.path.length + 1),
    source: realSource,
    target: clean,
  };
}
