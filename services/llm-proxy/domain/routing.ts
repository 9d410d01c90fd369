// Which engine of a pool a call goes to: the one that its session was at, as its cache is there, unless that one is
// overloaded, out of use, or has failed this very call.
import { STICKY_LOAD_FACTOR, STICKY_LOAD_SLACK } from '../../common/limits.ts';

export interface RoutedEngine {
  /** Calls in flight. */
  readonly load: number;
  readonly loadMax: number;
  /** Sessions whose calls go to it. */
  readonly sessions: number;
  /** It answered lately. */
  readonly up: boolean;
  readonly draining: boolean;
}

export type Route<T> =
  | { readonly kind: 'engine'; readonly engine: T }
  /** All that may be asked have as many calls as they may. */
  | { readonly kind: 'full' }
  | { readonly kind: 'none' };

/** `home` is where the session was; `failed` have failed this call. */
export function route<T extends RoutedEngine>(
  engines: readonly T[],
  home: T | undefined,
  failed: ReadonlySet<T>,
): Route<T> {
  const used = engines.filter((engine) => !engine.draining);
  const best = firstWithSome(
    () => used.filter((engine) => engine.up && !failed.has(engine)),
    () => used.filter((engine) => engine.up),
    // None answered lately: one of them may again.
    () => used.filter((engine) => !failed.has(engine)),
    () => used,
  );
  if (best.length === 0) return { kind: 'none' };
  const free = best.filter((engine) => engine.load < engine.loadMax);
  const least = free.reduce<T | undefined>((a, b) => (a === undefined || isLess(b, a) ? b : a), undefined);
  if (least === undefined) return { kind: 'full' };
  const stays = home !== undefined && free.includes(home) && !isOverloaded(home, least);
  return { kind: 'engine', engine: stays ? home : least };
}

function firstWithSome<T>(...choices: (() => readonly T[])[]): readonly T[] {
  for (const choice of choices) {
    const found = choice();
    if (found.length > 0) return found;
  }
  return [];
}

/** Sessions decide between equal loads: those of agents are idle most of the time. */
const isLess = (a: RoutedEngine, b: RoutedEngine): boolean =>
  a.load < b.load || (a.load === b.load && a.sessions < b.sessions);

const isOverloaded = (home: RoutedEngine, least: RoutedEngine): boolean =>
  home.load > least.load * STICKY_LOAD_FACTOR && home.load - least.load >= STICKY_LOAD_SLACK;
