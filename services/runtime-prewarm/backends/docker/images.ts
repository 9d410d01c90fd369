// Images of an engine: found by name, pulled where that is allowed.
import { asPolarError, PolarError } from '../../../common/errors.ts';
import { type Engine, EngineError } from './engine.ts';

export interface DockerImages {
  /** Their digest. Throws IMAGE_NOT_FOUND. */
  find(name: string, signal: AbortSignal): Promise<string>;
  /** Names that are here now. */
  list(): Promise<string[]>;
}

/** `pull`: fetch what is not here. Two that need the same image wait for one fetch. */
export function dockerImages(engine: Engine, pull: boolean): DockerImages {
  const pulling = new Map<string, Promise<void>>();
  return {
    async find(name, signal) {
      if (name === '')
        throw new PolarError('IMAGE_NOT_FOUND', 'docker has no image of its own: set runtime.image');
      const here = await digestOf(engine, name);
      if (here !== undefined) return here;
      if (!pull) throw missing(name, 'and gateway.nodes[].docker.pull is never: pull or import it there');
      let fetch = pulling.get(name);
      if (fetch === undefined) {
        fetch = pullImage(engine, name, signal).finally(() => pulling.delete(name));
        pulling.set(name, fetch);
      }
      await fetch;
      const pulled = await digestOf(engine, name);
      if (pulled === undefined) throw missing(name, 'also after pulling it');
      return pulled;
    },
    async list() {
      const all = await engine.call<{ RepoTags: string[] | null }[]>('GET', '/images/json');
      return all
        .flatMap(({ RepoTags }) => RepoTags ?? [])
        .filter((tag) => tag !== '<none>:<none>')
        .sort();
    },
  };
}

async function digestOf(engine: Engine, name: string): Promise<string | undefined> {
  try {
    const { Id } = await engine.call<{ Id: string }>('GET', `/images/${encodeURIComponent(name)}/json`);
    return Id;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return undefined;
    throw new PolarError('SANDBOX_FAILED', `docker does not answer: ${asPolarError(error).message}`, {
      cause: error,
    });
  }
}

/** The engine answers with success and tells a failure as the last of its progress. */
async function pullImage(engine: Engine, name: string, signal: AbortSignal): Promise<void> {
  // Without a tag the engine would pull every one there is.
  const whole = /[:@][^/]*$/.test(name) ? name : `${name}:latest`;
  try {
    const path = `/images/create?fromImage=${encodeURIComponent(whole)}`;
    const said = await engine.text('POST', path, { signal });
    const fault = /"error":"((?:[^"\\]|\\.)*)"/.exec(said)?.[1];
    if (fault !== undefined) throw new Error(fault);
  } catch (error) {
    signal.throwIfAborted();
    throw missing(name, `and it could not be pulled: ${(error as Error).message}`);
  }
}

const missing = (name: string, why: string): PolarError =>
  new PolarError('IMAGE_NOT_FOUND', `docker has no image ${JSON.stringify(name)} on this node, ${why}`);
