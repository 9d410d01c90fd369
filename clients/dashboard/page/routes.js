// @ts-check
// Places of the page, kept behind the # of its address.

/**
 * @typedef {{ view: 'mesh' } | { view: 'tasks', filter: Filter, page: string } | { view: 'task', id: string, page: string }
 *   | { view: 'session', id: string } | { view: 'compare', ids: [string, string] }} Route
 * @typedef {{ name: string, harness: string, state: string, outcome: string }} Filter
 */

/** @param {string} hash @returns {Route} the mesh where it says nothing else */
export function routeOf(hash) {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [view = '', ...parts] = path.split('/');
  const [first = '', second = ''] = parts.map(decoded);
  const asked = new URLSearchParams(query);
  const page = asked.get('page') ?? '';
  if (view === 'task' && first !== '') return { view, id: first, page };
  if (view === 'session' && first !== '') return { view, id: first };
  if (view === 'compare' && first !== '' && second !== '') return { view, ids: [first, second] };
  if (view !== 'tasks') return { view: 'mesh' };
  const [name, harness, state, outcome] = ['name', 'harness', 'state', 'outcome'].map(
    (key) => asked.get(key) ?? '',
  );
  return { view, page, filter: /** @type {Filter} */ ({ name, harness, state, outcome }) };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

/** @param {Filter} filter @param {string} [page] */
export function tasksHash(filter, page = '') {
  const set = Object.entries({ ...filter, page }).filter(([, value]) => value !== '');
  return `#/tasks${set.length === 0 ? '' : `?${new URLSearchParams(set)}`}`;
}

/** @param {string} id @param {string} [page] */
export const taskHash = (id, page = '') =>
  `#/task/${encodeURIComponent(id)}${page === '' ? '' : `?page=${encodeURIComponent(page)}`}`;

/** @param {string} id */
export const sessionHash = (id) => `#/session/${encodeURIComponent(id)}`;

/** @param {string} a @param {string} b */
export const compareHash = (a, b) => `#/compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`;
