// A log whose lines a test reads.
import pino from 'pino';
import type { Logger } from '../../services/common/logger.ts';

/** The lines so far, as they come. */
export function loggedLines(): { readonly log: Logger; readonly lines: readonly string[] } {
  const lines: string[] = [];
  return { log: pino({ base: null }, { write: (line: string) => void lines.push(line) }), lines };
}
