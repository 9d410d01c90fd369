// Headers of a message that goes through a proxy.

/** Of one connection, not of the message; a host is said by the URL. */
const OF_CONNECTION = [
  ...['connection', 'proxy-connection', 'keep-alive', 'proxy-authorization', 'proxy-authenticate'],
  ...['te', 'trailer', 'upgrade', 'host'],
];

/**
 * Names and values in turn, as they are written, without those that end at a proxy; `added` comes first.
 * transfer-encoding stays: it says that there is a body, and whoever sends the message makes its own chunks.
 */
export function passedOn(raw: readonly string[], added: readonly string[]): string[] {
  const named = raw.flatMap((name, i) =>
    i % 2 === 0 && name.toLowerCase() === 'connection'
      ? (raw[i + 1] ?? '')
          .toLowerCase()
          .split(',')
          .map((one) => one.trim())
      : [],
  );
  const dropped = new Set([...OF_CONNECTION, ...named]);
  const kept = raw.filter((_, i) => !dropped.has((raw[i - (i % 2)] ?? '').toLowerCase()));
  return [...added, ...kept];
}
