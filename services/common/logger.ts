// One pino root a process. Messages are constant strings; prompts, keys and tokens are never logged.
import pino, { type DestinationStream, type Logger } from 'pino';

export type { Logger };

/** The root of a service's loggers: JSON lines on standard output. */
export function createLogger(service: string, level = 'info', bindings: object = {}): Logger {
  const options = {
    level,
    base: { service, ...bindings },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: withoutSecretsWithin },
    serializers: Object.fromEntries(SECRETS.map((name) => [name, () => REDACTED])),
  };
  return pino(options, new Lines());
}

/** Fields that hold credentials. They are not to be logged; where one is, it is not told. */
const SECRETS = ['authorization', 'api_key', 'capability'];
const REDACTED = '[Redacted]';

/** The fields, or a copy where one of them has such a field. pino's own way looks at every value by a path each. */
function withoutSecretsWithin(fields: object): Record<string, unknown> {
  let told = fields as Record<string, unknown>;
  for (const key in fields) {
    const value = told[key];
    if (typeof value !== 'object' || value === null) continue;
    const found = SECRETS.filter((name) => Object.hasOwn(value, name));
    if (found.length === 0) continue;
    told = { ...told, [key]: { ...value, ...Object.fromEntries(found.map((name) => [name, REDACTED])) } };
  }
  return told;
}

/** Lines wait for each other so long, as a write costs as much as ten of them. */
const WAIT_MS = 100;
const WAIT_BYTES = 4_096;
/** From here on they do not wait. */
const WARNING = pino.levels.values['warn'] ?? 0;

/** Where it is set, pino says of which level a line is. */
const METADATA: unique symbol = Symbol.for('pino.metadata');

/** Standard output. What waits goes out at the end of the process, too. */
class Lines implements DestinationStream {
  readonly [METADATA] = true;
  readonly #output = pino.destination({ fd: 1, sync: false, minLength: WAIT_BYTES });
  #waiting: NodeJS.Timeout | undefined;
  lastLevel = 0;

  write(line: string): void {
    this.#output.write(line);
    if (this.lastLevel >= WARNING) this.#flush();
    else this.#waiting ??= setTimeout(() => this.#flush(), WAIT_MS).unref();
  }

  #flush(): void {
    clearTimeout(this.#waiting);
    this.#waiting = undefined;
    this.#output.flush();
  }
}
