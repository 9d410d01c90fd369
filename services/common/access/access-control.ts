// Who may call what: the tokens of a file, read again when it has changed.
import { readText } from '../config/faults.ts';
import { asPolarError, PolarError } from '../errors.ts';
import { versionOf } from '../file-version.ts';
import { sha256 } from '../ids.ts';
import { SCOPE_OF_RPC, type Scope } from './scopes.ts';
import { type Access, parseTokens } from './tokens.ts';

/** Scopes of calls that change something for others: who made each is told. */
const TOLD: readonly (Scope | undefined)[] = ['submit', 'operate'];

/** Between two looks at the file. */
const LOOK_MS = 1_000;

export class AccessControl {
  readonly #file: string;
  readonly #onFault: (error: PolarError) => void;
  readonly #onChange: (caller: string, method: string) => void;
  #tokens: ReadonlyMap<string, Access>;
  #changed: string;
  #lookedMs = performance.now();

  /**
   * `onFault` is told of a file that cannot be used any more; what it held before holds on. `onChange` is told whose token
   * a call that submits or operates has. Throws INVALID_CONFIG.
   */
  constructor(
    file: string,
    onFault: (error: PolarError) => void,
    onChange: (caller: string, method: string) => void = () => {},
  ) {
    this.#file = file;
    this.#onFault = onFault;
    this.#onChange = onChange;
    this.#changed = versionOf(file);
    this.#tokens = parseTokens(readText(file, 'INVALID_CONFIG'), file);
  }

  /**
   * Throws UNAUTHENTICATED or SCOPE_MISSING unless the caller may call this RPC.
   *
   * @param path `/package.Service/Method`
   * @param authorization the header
   */
  require(path: string, authorization: string | undefined | null): void {
    const [, service = '', method = ''] = path.split('/');
    const scopes = SCOPE_OF_RPC[service];
    if (scopes === undefined) return;
    this.requireScope(scopes[method], authorization, method);
  }

  /** Throws UNAUTHENTICATED or SCOPE_MISSING. `scope` undefined: nobody may. */
  requireScope(scope: Scope | undefined, authorization: string | undefined | null, what: string): void {
    const token = /^Bearer\s+(\S+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) {
      throw new PolarError('UNAUTHENTICATED', 'an access token is needed: set POLAR_TOKEN');
    }
    const access = this.of(token);
    if (access === undefined) throw new PolarError('UNAUTHENTICATED', 'the access token is unknown');
    if (scope !== undefined && access.scopes.has(scope)) {
      if (TOLD.includes(scope)) this.#onChange(access.name, what);
      return;
    }
    const message = `the token of ${access.name} has no scope ${scope ?? 'for it'}, which ${what} needs`;
    throw new PolarError('SCOPE_MISSING', message);
  }

  /** Whose token it is. */
  of(token: string): Access | undefined {
    this.#look();
    return this.#tokens.get(sha256(token));
  }

  #look(): void {
    const now = performance.now();
    if (now - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = now;
    try {
      const changed = versionOf(this.#file);
      if (changed === this.#changed) return;
      this.#changed = changed;
      this.#tokens = parseTokens(readText(this.#file, 'INVALID_CONFIG'), this.#file);
    } catch (error) {
      this.#onFault(asPolarError(error));
    }
  }
}
