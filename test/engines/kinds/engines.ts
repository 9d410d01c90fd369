// The engines, in the order in which they are tested.
import type { RealEngine } from './engine.ts';
import { llamacpp } from './llamacpp.ts';
import { sglang } from './sglang.ts';
import { vllm } from './vllm.ts';

export const ENGINES: readonly RealEngine[] = [vllm, sglang, llamacpp];
