// A task's settings, as an adapter reads them.
import type { z } from 'zod';
import { checkStrict } from '../../common/config/faults.ts';
import type { HarnessName } from '../../common/specs/catalogue.ts';
import { harnessSettings } from '../../common/specs/harness-settings.ts';
import type { HarnessContext } from './adapter.ts';

type Settings = { [N in HarnessName]: z.output<(typeof harnessSettings)[N]> };

/** With defaults. Throws INVALID_TASK, naming what is wrong. */
export function settingsOf<N extends HarnessName>(name: N, { settings }: HarnessContext): Settings[N] {
  const schema = harnessSettings[name] as z.ZodType as z.ZodType<Settings[N]>;
  return checkStrict(schema, settings, 'harness.settings', 'INVALID_TASK');
}

/** `--name value`, where there is a value. */
export const flag = (name: string, value: string | number | undefined): string[] =>
  value === undefined ? [] : [`--${name}`, String(value)];
