// @ts-check
// Why a session has its reward: what its evaluator told beside it.
import { h } from '../element.js';
import { count, cut } from '../words.js';
import { facts, fold, section } from './parts.js';

/** @import { Evaluation } from '../messages.ts' */

/** Of a text of several lines, its end. */
const TEXT_CHARS = 20_000;
/** Of anything else, its beginning. */
const VALUE_CHARS = 1_000;

/** @param {Evaluation | undefined} evaluation @param {string | undefined} problem why it is not here */
export function evaluationPart(evaluation, problem) {
  if (evaluation === undefined)
    return problem === undefined ? '' : section('Evaluation', h('p', { class: 'dim' }, problem));
  const values = Object.entries(evaluation).map(([name, value]) => ({
    name: name.replaceAll('_', ' '),
    text: typeof value === 'string' ? value : JSON.stringify(value),
  }));
  const [short, long] = [false, true].map((isLong) =>
    values.filter(({ text }) => text.trimEnd().includes('\n') === isLong),
  );
  return section(
    'Evaluation',
    facts((short ?? []).map(({ name, text }) => [name, cut(text, VALUE_CHARS)])),
    ...(long ?? []).map(({ name, text }) => textPart(name, text)),
  );
}

/** @param {string} name @param {string} text */
function textPart(name, text) {
  const left = text.length - TEXT_CHARS;
  const title = left > 0 ? `${name}, without its first ${count(left)} characters` : name;
  return fold(title, true, h('pre', { tabindex: 0, 'aria-label': name }, text.slice(-TEXT_CHARS)));
}
