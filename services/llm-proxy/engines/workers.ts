// Discovery: the workers behind a router of SGLang. They are called directly, as routers drop what replies say of tokens.
import { ENGINES_FOUND_MAX } from '../../common/limits.ts';
import { arrayOf, isObject, type JsonObject, textOf } from '../domain/json.ts';
import { Engine } from './engine.ts';
import type { EngineSpec } from './spec.ts';

export class Workers implements Disposable {
  readonly #router: Engine;
  readonly #url: string;

  constructor(url: string, spec: EngineSpec) {
    this.#url = url;
    this.#router = new Engine(url, spec);
  }

  [Symbol.dispose](): void {
    this.#router[Symbol.dispose]();
  }

  /** Addresses to call: the workers', or the router's own where a worker does only half of the work. */
  async list(signal: AbortSignal): Promise<readonly string[]> {
    const urls = workersIn(await this.#asked(signal));
    return urls ?? [this.#url];
  }

  /** Older routers have another path. */
  async #asked(signal: AbortSignal): Promise<JsonObject> {
    try {
      return await this.#router.get('/workers', signal);
    } catch (error) {
      signal.throwIfAborted();
      return await this.#router.get('/list_workers', signal).catch(() => {
        throw error;
      });
    }
  }
}

/** Unset: prefill and decode are apart, so calls have to go through the router. */
function workersIn({ workers, urls }: JsonObject): readonly string[] | undefined {
  if (urls !== undefined) return known(arrayOf(urls).map(textOf));
  const listed = arrayOf(workers).filter(isObject);
  if (listed.some(({ worker_type: type }) => (textOf(type) ?? 'regular') !== 'regular')) return undefined;
  return known(listed.map(({ url }) => textOf(url)));
}

const known = (urls: readonly (string | undefined)[]): string[] =>
  [...new Set(urls.filter((url) => url !== undefined && /^https?:\/\//.test(url)))].slice(
    0,
    ENGINES_FOUND_MAX,
  ) as string[];
