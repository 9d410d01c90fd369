// Images of an engine: found by name, pulled where that is allowed.
import { abortable } from '../../../common/clock.ts';
import { PolarError } from '../../../common/errors.ts';
import { DOCKER_CALL_MS } from '../../../common/limits.ts';
import { LABELS } from '../../domain/container-config.ts';
import { isRefused } from '../../domain/pull-failure.ts';
import type { Dialect } from './dialect.ts';
import { type Engine, EngineError } from './engine.ts';
import type { PulledImages } from './pulled.ts';
import { Pulls } from './pulls.ts';

export interface DockerImages {
  /** Their digest. Throws IMAGE_NOT_FOUND, SANDBOX_FAILED, and what an engine throws that is away or begins to work. */
  find(name: string, signal: AbortSignal): Promise<string>;
  /** All that are here now, prepared layers too. */
  list(): Promise<ListedImage[]>;
  /** Those that a task may name. */
  namesOf(all: readonly ListedImage[]): string[];
}

export interface ListedImage {
  readonly Id: string;
  readonly RepoTags: readonly string[] | null;
  readonly Labels: Readonly<Record<string, string>> | null;
}

/** It is a manager's own, and no task's. One that somebody made of a sandbox has that label empty. */
export const isLayer = ({ Labels }: Pick<ListedImage, 'Labels'>): boolean => Boolean(Labels?.[LABELS.layer]);

/** `pull`: fetch what is not here. */
export function dockerImages(
  engine: Engine,
  dialect: Dialect,
  pull: boolean,
  pulled: PulledImages,
): DockerImages {
  const missing = (image: string, why: string): PolarError =>
    new PolarError(
      'IMAGE_NOT_FOUND',
      `${dialect.name} has no image ${JSON.stringify(image)} on this node, ${why}`,
    );
  const pulls = new Pulls(engine, async (name) => {
    const id = await digestOf(engine, name, AbortSignal.timeout(DOCKER_CALL_MS));
    if (id !== undefined) pulled.add(name, id);
  });
  return {
    async find(name, signal) {
      if (name === '')
        throw new PolarError('IMAGE_NOT_FOUND', `${dialect.name} has no image of its own: set runtime.image`);
      await abortable(pulled.settled(), signal);
      const here = await digestOf(engine, name, signal);
      if (here !== undefined) pulled.used(here);
      if (here !== undefined) return here;
      if (!pull)
        throw missing(name, `and gateway.nodes[].${dialect.name}.pull is never: pull or import it there`);
      await pulls.fetch(name, signal);
      const fetched = await digestOf(engine, name, signal);
      if (fetched === undefined) throw missing(name, 'also after pulling it');
      return fetched;
    },
    list: () => engine.call<ListedImage[]>('GET', '/images/json'),
    namesOf: (all) =>
      all
        .filter((one) => !isLayer(one))
        .flatMap(({ RepoTags }) => RepoTags ?? [])
        .filter((tag) => tag !== '<none>:<none>')
        .map((tag) => dialect.imageName(tag))
        .sort(),
  };
}

async function digestOf(engine: Engine, name: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const path = `/images/${encodeURIComponent(name)}/json`;
    const { Id, Config } = await engine.call<{ Id: string; Config: Pick<ListedImage, 'Labels'> | null }>(
      'GET',
      path,
      { signal },
    );
    return isLayer(Config ?? { Labels: null }) ? undefined : Id;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.status === 404) return undefined;
    // Podman says so of what is no name of an image, too.
    if (error.status >= 500 && !isRefused(error.message)) throw error;
    const why = error.message || 'it is no name of an image';
    throw new PolarError('IMAGE_NOT_FOUND', `image ${JSON.stringify(name)}: ${why}`, { cause: error });
  }
}
