// Logprobs of an engine whose list leaves out some of the sampled tokens.

export interface TokenLogprob {
  readonly id: number;
  readonly logprob: number;
}

/**
 * A logprob for each id; NaN where none is told, or where it is open which of several equal ids one belongs to.
 * `entries` are in the order of the ids. Unset: they do not stand in the ids at all.
 */
export function pairLogprobs(ids: ArrayLike<number>, entries: readonly TokenLogprob[]): number[] | undefined {
  const first = placesFrom(ids, entries, 0, 1);
  const last = placesFrom(ids, entries, ids.length - 1, -1);
  if (first === undefined || last === undefined) return undefined;
  const paired = new Array<number>(ids.length).fill(Number.NaN);
  for (const [i, { logprob }] of entries.entries()) {
    const place = first[i] as number;
    if (place === last[i]) paired[place] = logprob;
  }
  return paired;
}

/** The places of the entries when each takes the next one that has its id, from the start on or from the end. */
function placesFrom(
  ids: ArrayLike<number>,
  entries: readonly TokenLogprob[],
  from: number,
  step: 1 | -1,
): number[] | undefined {
  const places = new Array<number>(entries.length);
  let at = from;
  for (let n = 0; n < entries.length; n++) {
    const i = step === 1 ? n : entries.length - 1 - n;
    while (at >= 0 && at < ids.length && ids[at] !== entries[i]?.id) at += step;
    if (at < 0 || at >= ids.length) return undefined;
    places[i] = at;
    at += step;
  }
  return places;
}
