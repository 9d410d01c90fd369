// One pino root a process. Messages are constant strings; prompts, keys and tokens are never logged.
import pino, { type DestinationStream, type Logger } from 'pino';
import type { AttemptRef } from '../../gen/ts/polar/event/v1/work_pb.js';
import { Lines } from './lines.ts';

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
  return pino(options, new Output());
}

/** Whom a line is about. */
export const attemptFields = ({ sessionId, attempt, taskId }: AttemptRef): object => ({
  session_id: sessionId,
  attempt,
  task_id: taskId,
});

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

/** From here on lines do not wait for others. */
const WARNING = pino.levels.values['warn'] ?? 0;

/** Where it is set, pino says of which level a line is. */
const METADATA: unique symbol = Symbol.for('pino.metadata');

const STANDARD_OUTPUT = new Lines(1);

/** What waits goes out at the end of the process, too. */
class Output implements DestinationStream {
  readonly [METADATA] = true;
  lastLevel = 0;

  write(line: string): void {
    STANDARD_OUTPUT.add(line, this.lastLevel >= WARNING);
  }
}
