// Token mode: a call that goes on from a recorded one is given that one's exact ids and the ids of what is new.

import { Kept } from '../../common/kept.ts';
import { RENDERERS_KEPT_MAX } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { GoesOn } from '../domain/attempt-state.ts';
import { type AuditCounts, isAudited } from '../domain/audit.ts';
import { joined } from '../domain/bridge.ts';
import type { Drift } from '../domain/drift.ts';
import type { EngineKind } from '../domain/engine-features.ts';
import { arrayOf, type JsonObject, type JsonValue } from '../domain/json.ts';
import type { Notes } from '../domain/notes.ts';
import { isOneOff, templateSettings } from '../domain/template-settings.ts';
import { hasMedia } from '../domain/template-sketch.ts';
import type { EngineCall, TextCall } from '../engines/engine-call.ts';
import { TokenCall, type TokenPrompt, type TokenWay } from '../engines/token-call.ts';
import { renderFailed } from '../events.ts';
import { Audit } from './audit.ts';
import { Bridges } from './bridges.ts';
import { IdTexts } from './id-texts.ts';
import { localRender } from './local-renderer.ts';
import { engineRender, type Render, type Rendering } from './renderer.ts';
import { llamacpp } from './ways/llamacpp.ts';
import { sglang } from './ways/sglang.ts';
import { VllmWay } from './ways/vllm.ts';

export interface TokenModeSettings {
  readonly mode: 'text' | 'token';
  /** Folder of the model's tokenizer and chat template; unset: the engine renders. */
  readonly tokenizer?: string | undefined;
  readonly audit_share: number;
}

/** A call as far as token mode needs it. */
export interface TokenModeCall {
  readonly callId: string;
  /** Of session and attempt. */
  readonly session: string;
  readonly messages: readonly JsonObject[];
  readonly tools: readonly JsonValue[];
  /** Of the body with the messages. */
  readonly notes: Notes;
  readonly goesOn: () => GoesOn | Drift;
}

/** What is kept for an engine and its model. */
interface Renderer {
  readonly bridges: Bridges;
  /** Renders from scratch. */
  readonly render: Render;
}

const callsUpTo = (message: JsonObject, before = 0): number => before + arrayOf(message['tool_calls']).length;

export class TokenMode {
  readonly #settings: TokenModeSettings;
  readonly #log: Logger;
  readonly #local: Render | undefined;
  readonly #renderers = new Kept<Renderer>(RENDERERS_KEPT_MAX);
  readonly #texts = new IdTexts();
  readonly #ways: Readonly<Partial<Record<EngineKind, TokenWay>>> = { sglang, llamacpp, vllm: new VllmWay() };
  readonly #audit: Audit;

  /** The signal ends what runs beside calls. Throws INVALID_CONFIG. */
  constructor(settings: TokenModeSettings, log: Logger, signal: AbortSignal) {
    this.#settings = settings;
    this.#log = log;
    this.#audit = new Audit(signal);
    const wanted = settings.mode === 'token' && settings.tokenizer !== undefined;
    this.#local = wanted ? localRender(settings.tokenizer) : undefined;
  }

  /** Unset in text mode. */
  get audited(): AuditCounts | undefined {
    return this.#settings.mode === 'text' ? undefined : this.#audit.counts;
  }

  /** The call in token mode, where the node wants that and the engine's kind can do it. */
  take(text: TextCall, call: TokenModeCall): EngineCall {
    const way = this.#ways[text.engine.adapter.kind];
    if (this.#settings.mode === 'text' || way === undefined) return text;
    return new TokenCall(text, way, (signal) => this.#promptOf(text, way, call, signal));
  }

  async #promptOf(
    text: TextCall,
    way: TokenWay,
    call: TokenModeCall,
    signal: AbortSignal,
  ): Promise<TokenPrompt | Drift> {
    const goesOn = call.goesOn();
    if (typeof goesOn === 'string') return goesOn;
    const { messages, tools, notes } = call;
    const isRendered = !isOneOff(text.sent) && (way.takes?.(text.sent) ?? true);
    if (!isRendered || notes.each(messages, hasMedia).includes(true)) return 'not_rendered';
    const renderer = this.#rendererOf(text);
    if (renderer === undefined) return 'not_rendered';
    const rendering = { messages, tools, settings: templateSettings(text.sent) };
    const tail = await this.#continuation(renderer.bridges, goesOn, { ...rendering, notes }, signal);
    if (typeof tail === 'string') return tail;
    const { index, ids, expertRows, sampledAt } = goesOn;
    if (isAudited(call.callId, this.#settings.audit_share)) {
      const sent = { ids: joined(ids.from(0), tail), tailLength: tail.length, sampledAt };
      this.#audit.add({ render: renderer.render, rendering, sent });
    }
    const pieces = this.#texts.of(call.session, goesOn, tail);
    const calls = notes.inOrder(callsUpTo, messages, callsUpTo).at(-1) ?? 0;
    return { behind: index, tail, expertRows, length: ids.length + tail.length, text: pieces, calls };
  }

  /** A renderer that fails never fails a call: the engine can template what it is asked. */
  async #continuation(
    bridges: Bridges,
    goesOn: GoesOn,
    rendering: Rendering,
    signal: AbortSignal,
  ): Promise<Int32Array | Drift> {
    try {
      return await bridges.continuation(goesOn, rendering, signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      renderFailed(this.#log, error);
      return 'not_rendered';
    }
  }

  #rendererOf({ engine, model }: TextCall): Renderer | undefined {
    const render = engineRender(engine, model);
    if (render === undefined) return undefined;
    return this.#renderers.get(`${engine.name} ${model}`, () => ({
      bridges: new Bridges(this.#local ?? render, render),
      render,
    }));
  }
}
