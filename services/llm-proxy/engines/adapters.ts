// The engines there are.
import type { EngineAdapter } from './adapter.ts';
import { sglang } from './sglang.ts';
import { vllm } from './vllm.ts';

export const ADAPTERS: Readonly<Record<EngineAdapter['kind'], EngineAdapter>> = { sglang, vllm };
