// Which turn comes next in a conversation.
import { textOf } from '../prompt/messages.ts';
import type { ChatMessage } from '../request.ts';
import { DEFAULT_SCRIPT, type Script, type ScriptStep } from './schema.ts';

/** The first script that the conversation's first user message fits; the default one where none does. */
export function chooseScript(scripts: readonly Script[], messages: readonly ChatMessage[]): Script {
  const first = messages.find(({ role }) => role === 'user');
  const task = first === undefined ? '' : textOf(first);
  return scripts.find(({ when }) => when?.test(task) ?? true) ?? DEFAULT_SCRIPT;
}

/** The step after as many assistant turns as the conversation has, of the variant that the seed falls on. */
export function nextStep(script: Script, messages: readonly ChatMessage[], seed: number): ScriptStep {
  const turns = messages.filter(({ role }) => role === 'assistant').length;
  return variantOf(script, seed).steps[turns] ?? script.after;
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
