// One choice of a call: the script's step, written and tokenised as the model would.
import { randomUUID } from 'node:crypto';
import type { ChatCall, Choice, Dialect, VersionSpan } from './dialects/dialect.ts';
import { writeTurn } from './reply/format.ts';
import { generate } from './reply/generation.ts';
import { Logprobs } from './reply/logprobs.ts';
import { stopsOf, tokensMaxOf, toolsOf } from './request.ts';
import type { ScriptStep } from './script/schema.ts';
import { toTurn } from './script/turn.ts';
import type { Switches } from './switches.ts';

/** Its spans grow as its tokens come. */
export type PlannedChoice = Choice & { readonly versions: VersionSpan[] };

export interface ChoiceInput {
  readonly index: number;
  readonly step: ScriptStep;
  readonly seed: number;
}

export function planChoice(
  dialect: Dialect,
  call: ChatCall,
  switches: Switches,
  { index, step, seed }: ChoiceInput,
): PlannedChoice {
  const { request, promptIds, tokenizer } = call;
  const tools = toolsOf(request);
  const generation = generate(
    tokenizer,
    writeTurn(toTurn(step, tools, request.messages), switches.tool_format),
    {
      tokensMax: tokensMaxOf(request) ?? switches.context_tokens - promptIds.length,
      stop: stopsOf(request),
      splits: switches.split_samples,
    },
    { format: switches.tool_format, keepContentNewline: switches.keep_content_newline, tools },
  );
  const begun = generation.steps.flatMap(({ delta }) => delta.calls).filter(({ name }) => name !== undefined);
  return {
    index,
    generation,
    logprobs: new Logprobs(seed, promptIds),
    callIds: begun.map(() => callId(dialect)),
    versions: [],
  };
}

function callId({ name }: Dialect): string {
  const prefix = name === 'vllm' ? 'chatcmpl-tool-' : 'call_';
  return prefix + randomUUID().replaceAll('-', '').slice(0, 24);
}
