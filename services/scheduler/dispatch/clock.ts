// The clock that all decisions of this process are made by.
import { EvenClock } from '../domain/even-clock.ts';

export const clock = new EvenClock(
  () => Date.now(),
  () => performance.now(),
);

/** Unix time in milliseconds that no one sets, see EvenClock. */
export const unixMs = (): number => clock.now();
