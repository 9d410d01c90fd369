// What becomes of a command when nobody reads what it writes, or it cannot be written.
import process from 'node:process';
import { EXIT } from '../../../services/common/exit-codes.ts';
import { complain } from './say.ts';

/**
 * A reader that has enough, as `head`, is no failure. A command that ends in a way of its own when it is told to does so
 * here, too. What cannot be told on standard error is told nowhere. Returns whether the reader has enough.
 */
export function mindReaders(): () => boolean {
  let hasEnough = false;
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    hasEnough = code === 'EPIPE';
    if (!hasEnough) complain(`standard output cannot be written: ${message}`);
    if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(hasEnough ? EXIT.ok : EXIT.failed);
  });
  process.stderr.on('error', () => {});
  return () => hasEnough;
}
