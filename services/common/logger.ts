// One pino root a process. Messages are constant strings; prompts, keys and tokens are never logged.
import pino, { type Logger } from 'pino';

export type { Logger };

/** The root of a service's loggers: JSON lines on standard output. */
export function createLogger(service: string, level = 'info', bindings: object = {}): Logger {
  return pino({
    level,
    base: { service, ...bindings },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: ['authorization', '*.authorization', 'api_key', '*.api_key', 'capability', '*.capability'],
  });
}
