// What takes long and breaks rarely: `npm test` leaves it out, and the runs below POLAR_TEST_LONG=1 in package.json have it.
import process from 'node:process';

export const isLong = process.env['POLAR_TEST_LONG'] === '1';

/** A test of such a run alone. */
export const itLong: typeof it | (() => void) = isLong ? it : () => {};
