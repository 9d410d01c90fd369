// The engines there are.
import type { EngineKind } from '../domain/engine-features.ts';
import type { EngineAdapter } from './adapter.ts';
import { llamacpp } from './llamacpp.ts';
import { openai } from './openai.ts';
import { sglang } from './sglang.ts';
import { vllm } from './vllm.ts';

export const ADAPTERS: Readonly<Record<EngineKind, EngineAdapter>> = { sglang, vllm, llamacpp, openai };
