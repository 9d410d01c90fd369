// Where processes of the tests keep compiled code: else each start compiles all of its modules anew, for as much CPU again.
import { join } from 'node:path';
import process from 'node:process';

const folder = process.env['POLAR_CACHE_DIR'] ?? join(import.meta.dirname, '../../.cache');

/** For the environment of a process that gets no other. */
export const COMPILED = { NODE_COMPILE_CACHE: join(folder, 'compiled') };
