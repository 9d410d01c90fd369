// From a request to a call with its choices: what will be answered, before the first token is.
import { randomUUID } from 'node:crypto';
import { type PlannedChoice, planChoice } from './choice.ts';
import type { ChatCall } from './dialects/dialect.ts';
import type { Engine } from './engine.ts';
import { RequestFault } from './faults.ts';
import { readPrompt } from './prompt/reading.ts';
import { type ChatRequest, tokensMaxOf, toolsOf } from './request.ts';
import { findPlace, nextStep } from './script/play.ts';
import { mergeSwitches, parseSwitches, type Switches } from './switches.ts';

export interface ChatPlan {
  readonly call: ChatCall;
  readonly choices: readonly PlannedChoice[];
  readonly switches: Switches;
}

/**
 * Throws a RequestFault. `header` holds switches for this call alone. With `input_ids` the conversation is the one that
 * the ids hold: what else is asked says nothing of it.
 */
export function planChat(engine: Engine, asked: ChatRequest, header: string | undefined): ChatPlan {
  const { dialect, scripts, modelName } = engine.options;
  const request = withConversation(engine, asked);
  dialect.check(request, modelName);
  const place = findPlace(scripts, request.messages);
  const { script } = place;
  const seed = request.seed ?? 0;
  const stepOf = (index: number) => nextStep(place, request, seed + index);
  const own = header === undefined ? undefined : parseSwitches(header);
  const switches = mergeSwitches(engine.options.switches, script.switches, stepOf(0).switches, own);
  const call: ChatCall = {
    id: dialect.name === 'vllm' ? `chatcmpl-${randomUUID()}` : randomUUID().replaceAll('-', ''),
    created: Math.floor(Date.now() / 1000),
    model: request.model ?? modelName,
    request,
    promptIds: promptOf(engine, request, switches),
    tokenizer: engine.model.tokenizer,
    parsesTools: toolsOf(request).length > 0,
    givesTokenIds: switches.token_ids,
    givesLogprobs: switches.logprobs,
    promptTokensTold: switches.prompt_tokens_told,
    experts: {
      layers: switches.expert_layers,
      topK: switches.expert_top_k,
      experts: switches.experts,
    },
  };
  const choices = Array.from({ length: request.n ?? 1 }, (_, index) =>
    planChoice(dialect, call, switches, { index, step: stepOf(index), seed: script.seed + seed + index }),
  );
  return { call, choices, switches };
}

function withConversation({ model }: Engine, request: ChatRequest): ChatRequest {
  if (request.input_ids == null) return request;
  return { ...request, messages: readPrompt(model.tokenizer.decode(request.input_ids)).messages };
}

function promptOf(engine: Engine, request: ChatRequest, switches: Switches): readonly number[] {
  const { dialect } = engine.options;
  const ids = request.input_ids ?? engine.prompts.ids(request, switches);
  const tokensMax = tokensMaxOf(request);
  if (ids.length + (tokensMax ?? 1) <= switches.context_tokens) return ids;
  throw new RequestFault(400, dialect.overflow(ids.length, tokensMax, switches.context_tokens));
}
