// Why something is refused.
import type { PolarError } from '../../services/common/errors.ts';

/** The reason of what it throws; `none` where it throws nothing. */
export function reasonOf(run: () => unknown): string {
  try {
    run();
    return 'none';
  } catch (error) {
    return (error as PolarError).reason;
  }
}
