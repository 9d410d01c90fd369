// The Node.js that harnesses from npm run on: the executor asks for its folder to be mounted, runtime-prewarm allows it.
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';

/** The folder whose bin/node it is: the packaged one, whichever Node.js runs this process; else that one's. */
export function nodeFolder(): string {
  const packaged = join(import.meta.dirname, '../../node_modules/node');
  return realpathSync(existsSync(packaged) ? packaged : dirname(dirname(process.execPath)));
}
