// The adapters, one for each name of the catalogue.
import { PolarError } from '../../common/errors.ts';
import { HARNESSES, type HarnessName, listed } from '../../common/specs/catalogue.ts';
import type { Adapter } from './adapter.ts';
import { pi } from './pi.ts';
import { shell } from './shell.ts';

export const ADAPTERS: Readonly<Record<HarnessName, Adapter>> = { shell, pi };

/** Throws UNKNOWN_HARNESS. */
export function adapterOf(name: string): Adapter {
  const known = HARNESSES.find((one) => one === name);
  if (known !== undefined) return ADAPTERS[known];
  throw new PolarError('UNKNOWN_HARNESS', `unknown harness ${name}; there are ${listed(HARNESSES)}`);
}
