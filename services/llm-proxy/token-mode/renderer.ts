// Who renders messages to ids: the engine itself, where it can.
import { forTemplate } from '../domain/engine-body.ts';
import type { EngineKind } from '../domain/engine-features.ts';
import { idsOf, type JsonObject, type JsonValue } from '../domain/json.ts';
import type { Notes } from '../domain/notes.ts';
import type { Engine } from '../engines/engine.ts';
import { notIds } from '../engines/failures.ts';

/** What a chat template makes a prompt of; always with the generation prompt. */
export interface Rendering {
  readonly messages: readonly JsonObject[];
  readonly tools: readonly JsonValue[];
  /** `templateSettings`. */
  readonly settings: JsonObject;
  /** Of the body with the messages; unset: there is none. */
  readonly notes?: Notes;
}

/** Throws ENGINE_REFUSED where it cannot render this, and what else a call of the engine throws. */
export type Render = (rendering: Rendering, signal: AbortSignal) => Promise<Int32Array>;

type EngineRender = (
  engine: Engine,
  model: string,
  body: JsonObject,
  signal: AbortSignal,
) => Promise<unknown>;

/** vLLM needs --enable-scale-out for it. */
const vllm: EngineRender = async (engine, model, body, signal) =>
  (await engine.ask('/v1/chat/completions/render', { model, ...body }, signal))['token_ids'];

const sglang: EngineRender = async (engine, model, body, signal) =>
  (await engine.ask('/tokenize', { model, ...body }, signal))['tokens'];

const llamacpp: EngineRender = async (engine, _model, body, signal) => {
  const { prompt } = await engine.ask('/apply-template', body, signal);
  const text = { content: prompt ?? '', add_special: true, parse_special: true };
  return (await engine.ask('/tokenize', text, signal))['tokens'];
};

const RENDERERS: Readonly<Partial<Record<EngineKind, EngineRender>>> = { vllm, sglang, llamacpp };

/** Unset: engines of this kind do not render. */
export function engineRender(engine: Engine, model: string): Render | undefined {
  const ask = RENDERERS[engine.adapter.kind];
  if (ask === undefined) return undefined;
  return async ({ messages, tools, settings }, signal) => {
    const body: JsonObject = { ...settings, messages: messages.map(forTemplate) };
    if (tools.length > 0) body['tools'] = [...tools];
    const ids = idsOf(await ask(engine, model, body, signal));
    if (ids === undefined) throw notIds(engine.name);
    return ids;
  };
}
