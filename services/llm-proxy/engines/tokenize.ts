// The ids of a prompt that is not to be sampled from, as the engine itself makes them.
import { withTimeout } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { type ChatOrder, forTemplate } from '../domain/engine-body.ts';
import type { EngineKind } from '../domain/engine-features.ts';
import {
  countOf,
  idsOf,
  isObject,
  type JsonObject,
  type JsonValue,
  objectOf,
  textOf,
} from '../domain/json.ts';
import { templateSettings } from '../domain/template-settings.ts';
import type { Engine } from './engine.ts';

import { notIds } from './failures.ts';
import type { Pool } from './pool.ts';
import { retried } from './retry.ts';

/** All tries of one prompt; then ENGINE_TIMEOUT. */
const TOKENIZE_MS = 30_000;

/** What is to be tokenized: a conversation up to the reply, or a text. */
export type TokenizeOrder = Pick<ChatOrder, 'messages' | 'tools' | 'fields'> | TextOrder;

interface TextOrder {
  readonly text: string;
  /** With the ids that stand before and after every text of the model. */
  readonly addSpecial: boolean;
}

export interface Tokenized {
  readonly ids: Int32Array;
  /** Ids that prompt and reply may have together; unset: the engine does not say. */
  readonly windowTokens: number | undefined;
}

/** Throws NOT_FOUND where engines of this kind do not tokenize, and what a call of an engine throws. */
export async function tokenize(pool: Pool, order: TokenizeOrder, stopping: AbortSignal): Promise<Tokenized> {
  const late = new PolarError('ENGINE_TIMEOUT', `the engine did not tokenize within ${TOKENIZE_MS} ms`);
  const signal = withTimeout(TOKENIZE_MS, stopping);
  try {
    return await retried(signal, async () => {
      const members = await pool.found(signal);
      const member = members.find(({ up, draining }) => up && !draining) ?? members[0];
      if (member === undefined) throw new PolarError('ENGINE_UNAVAILABLE', 'there is no engine');
      return await tokenizeAt(member.engine, order, signal);
    });
  } catch (error) {
    throw error instanceof PolarError || stopping.aborted ? error : late;
  }
}

async function tokenizeAt(engine: Engine, order: TokenizeOrder, signal: AbortSignal): Promise<Tokenized> {
  const { kind, features } = engine.adapter;
  if (features.tokenizePath === '') {
    throw new PolarError('NOT_FOUND', `engines of kind ${kind} do not count tokens`);
  }
  const body = kind === 'llamacpp' ? await llamaBody(engine, order, signal) : bodyOf(order, kind);
  const model = await engine.model(signal);
  const answer = await engine.ask(features.tokenizePath, { model, ...body }, signal);
  const ids = idsOf(answer['tokens']);
  if (ids === undefined) throw notIds(engine.name);
  return { ids, windowTokens: countOf(answer['max_model_len']) || undefined };
}

function bodyOf(order: TokenizeOrder, kind: EngineKind): JsonObject {
  if ('text' in order) return { prompt: order.text, add_special_tokens: order.addSpecial };
  const given = order.messages.map(forTemplate);
  const messages = kind === 'vllm' ? given.map(withThinking) : given;
  const tools = order.tools.length === 0 ? {} : { tools: [...order.tools] };
  const settings = kind === 'vllm' ? vllmSettings(order.fields) : templateSettings(order.fields);
  return { ...settings, ...endOf(order.fields, kind), messages, ...tools };
}

/** Its question for ids knows the thinking of earlier replies by the newer one of the names that its calls know. */
function withThinking(message: JsonValue): JsonValue {
  if (!isObject(message) || message['reasoning_content'] === undefined) return message;
  return { reasoning: message['reasoning_content'], ...message };
}

/** Its calls give an effort to the template as these two, its question for ids knows none. */
function vllmSettings(fields: JsonObject): JsonObject {
  const { reasoning_effort: effort, ...settings } = templateSettings(fields);
  if (effort === undefined) return settings;
  const kwargs = { enable_thinking: effort !== 'none', ...objectOf(settings['chat_template_kwargs']) };
  return { ...settings, chat_template_kwargs: { ...kwargs, reasoning_effort: effort } };
}

/** Whether the prompt goes on with the last message, and whether it begins the reply. */
function endOf(
  { continue_final_message: goesOn, add_generation_prompt: begins }: JsonObject,
  kind: EngineKind,
): JsonObject {
  return {
    ...(typeof goesOn === 'boolean' && { continue_final_message: goesOn }),
    // SGLang's calls do not know it; its question for ids does, and refuses a false one beside the other.
    ...(typeof begins === 'boolean' && kind !== 'sglang' && { add_generation_prompt: begins }),
  };
}

/** llama-server tokenizes texts only; its own template makes one of a conversation. */
async function llamaBody(engine: Engine, order: TokenizeOrder, signal: AbortSignal): Promise<JsonObject> {
  if ('text' in order) {
    return { content: order.text, add_special: order.addSpecial, parse_special: true };
  }
  const { prompt } = await engine.ask('/apply-template', bodyOf(order, 'llamacpp'), signal);
  return { content: textOf(prompt) ?? '', add_special: true, parse_special: true };
}
