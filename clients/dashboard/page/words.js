// @ts-check
// Numbers, times and names of the mesh as people read them.

/** @param {string | undefined} name an enum's, as SESSION_STATE_RUNNING @param {string} prefix */
export const plain = (name, prefix) => (name ?? '').replace(prefix, '').toLowerCase().replaceAll('_', ' ');

/** @param {import('./messages.ts').Session} session */
export const stateOf = ({ state, outcome }) =>
  outcome === undefined ? plain(state, 'SESSION_STATE_') : plain(outcome, 'OUTCOME_');

/** @param {string | undefined} time @returns {string} to the second, UTC */
export const moment = (time) => (time === undefined ? '–' : `${time.slice(0, 19).replace('T', ' ')}Z`);

/** @param {string | number | undefined} ms */
export function duration(ms) {
  const value = Number(ms ?? 0);
  if (value === 0) return '–';
  if (value < 1_000) return `${value} ms`;
  if (value < 60_000) return `${(value / 1_000).toFixed(1)} s`;
  if (value < 3_600_000) return `${Math.floor(value / 60_000)} min ${Math.round((value % 60_000) / 1_000)} s`;
  return `${(value / 3_600_000).toFixed(1)} h`;
}

/** @param {number | undefined} reward */
export const rewardText = (reward) => (reward === undefined ? '–' : String(Number(reward.toFixed(3))));

/** @param {string | number | undefined} n */
export const count = (n) => Number(n ?? 0).toLocaleString('en');

/** @param {import('./messages.ts').Counts | undefined} counts */
export const sum = (counts) => Object.values(counts ?? {}).reduce((all, one) => all + one, 0);

/** @param {string} text @param {number} max @returns {string} */
export const cut = (text, max) =>
  text.length <= max ? text : `${text.slice(0, max)} … (${count(text.length - max)} more characters)`;
