// Which turn comes next in a conversation: read off the conversation alone, so that a retried or resumed one goes on.
import { textOf } from '../prompt/messages.ts';
import { type ChatMessage, type ChatRequest, toolsOf } from '../request.ts';
import { type Aside, DEFAULT_SCRIPT, type Script, type ScriptStep } from './schema.ts';

/** What of a request decides. */
export type Asked = Pick<ChatRequest, 'messages' | 'tools' | 'tool_choice'>;

/** A script, and the turns that the conversation has of it. */
export interface Place {
  readonly script: Script;
  readonly turns: number;
}

/** The script that fits the latest user message, of those the first; the default one where none fits any. */
export function findPlace(scripts: readonly Script[], messages: readonly ChatMessage[]): Place {
  const fitting = scripts.map((script) => ({ script, at: lastFit(script, messages) }));
  const latest = Math.max(...fitting.map(({ at }) => at));
  const { script, at } = (latest >= 0 ? fitting.find((one) => one.at === latest) : undefined) ?? NOWHERE;
  return { script, turns: turnsIn(messages.slice(at)) };
}

const NOWHERE = { script: DEFAULT_SCRIPT, at: 0 };

/** Index of the last user message that a script fits, -1 for none. What is played anywhere fits from the first on. */
function lastFit({ when }: Script, messages: readonly ChatMessage[]): number {
  if (when === undefined) return 0;
  return messages.findLastIndex((one) => one.role === 'user' && when.test(textOf(one)));
}

const turnsIn = (messages: readonly ChatMessage[]): number =>
  messages.filter(({ role }) => role === 'assistant').length;

/** An aside that fits the request, else the step after the turns so far, of the variant that the seed falls on. */
export function nextStep({ script, turns }: Place, asked: Asked, seed: number): ScriptStep {
  const aside = script.asides.find((one) => fits(one, asked));
  return aside ?? variantOf(script, seed).steps[turns] ?? script.after;
}

function fits({ system, last, tools }: Aside, asked: Asked): boolean {
  const { messages } = asked;
  const said = messages.filter(({ role }) => role === 'system' || role === 'developer').map(textOf);
  const latest = messages.at(-1);
  return (
    (system?.test(said.join('\n')) ?? true) &&
    (last?.test(latest === undefined ? '' : textOf(latest)) ?? true) &&
    (tools === undefined || tools === toolsOf(asked).length > 0)
  );
}

function variantOf(script: Script, seed: number): Script['variants'][number] {
  const shares = script.variants.reduce((sum, { share }) => sum + share, 0);
  let place = ((seed % shares) + shares) % shares;
  for (const variant of script.variants) {
    place -= variant.share;
    if (place < 0) return variant;
  }
  throw new Error('a seed falls on no variant');
}
