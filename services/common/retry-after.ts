// When an answer of HTTP says to ask again.

/** `retry-after`, seconds or a date, in ms from now; undefined where it says neither. */
export function retryAfterMs(headers: Headers): number | undefined {
  const given = headers.get('retry-after') ?? '';
  const ms = /^[\d.]+$/.test(given) ? Number(given) * 1000 : Date.parse(given) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
