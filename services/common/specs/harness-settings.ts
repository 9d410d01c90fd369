// What a task may set of each harness, checked at submit and read again by the adapter.
import { z } from 'zod';
import type { HarnessName } from './catalogue.ts';
import { ARGUMENT_BYTES_MAX, argument } from './faults-of.ts';

const contextWindow = z.int().positive().default(262_144);
const maxTokens = z.int().positive().default(8_192);
const reasoning = z.boolean().default(false);
const count = z.int().positive();
/** Joined, they are one argument. */
const tools = z
  .array(argument)
  .refine((names) => Buffer.byteLength(names.join()) <= ARGUMENT_BYTES_MAX, {
    error: `must be at most ${ARGUMENT_BYTES_MAX} bytes together`,
  })
  .default([]);

export const harnessSettings = {
  shell: z.strictObject({}),
  pi: z.strictObject({ context_window: contextWindow, max_tokens: maxTokens, reasoning }),
  claude_code: z.strictObject({
    max_turns: count.optional(),
    reasoning_effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
    max_budget_usd: z.number().positive().optional(),
    fallback_model: argument.optional(),
    append_system_prompt: argument.optional(),
    /** Where one is named, others that need a permission are refused. */
    allowed_tools: tools,
    disallowed_tools: tools,
    max_thinking_tokens: z.int().min(0).optional(),
    context_window: contextWindow,
  }),
  codex: z.strictObject({
    reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).optional(),
    context_window: contextWindow,
    /** Tools that start sub-agents. */
    multi_agent: z.boolean().default(false),
  }),
  gemini_cli: z.strictObject({
    max_turns: count.optional(),
    /** Share of a window of 1,048,576 tokens at which the history is summed up; there is no setting for the window. */
    compression_threshold: z.number().positive().max(1).optional(),
  }),
  qwen_code: z.strictObject({ max_turns: count.optional(), context_window: contextWindow }),
  opencode: z.strictObject({
    context_window: contextWindow,
    max_tokens: maxTokens,
    reasoning,
    /** Laid over the configuration that the adapter writes. */
    opencode_config: z.record(z.string(), z.json()).default({}),
  }),
  mini_swe_agent: z.strictObject({
    /** US dollars; 0: no limit. */
    cost_limit: z.number().min(0).default(0),
    /** Model calls; 0: no limit. */
    step_limit: z.int().min(0).default(0),
    /** Given to the model's client with every call. */
    model_kwargs: z.record(z.string(), z.json()).default({}),
    model_retry_attempts: count.max(100).default(3),
  }),
  openclaw: z.strictObject({
    context_window: contextWindow,
    max_tokens: maxTokens,
    reasoning,
    thinking: z.enum(['off', 'minimal', 'low', 'medium', 'high', 'xhigh']).optional(),
  }),
  hermes: z.strictObject({ max_turns: count.default(90), context_window: contextWindow }),
  openhands_sdk: z.strictObject({
    /** Model calls. */
    max_iterations: count.optional(),
    temperature: z.number().min(0).max(2).optional(),
    max_output_tokens: count.optional(),
    reasoning_effort: z.enum(['none', 'low', 'medium', 'high', 'xhigh']).optional(),
    context_window: contextWindow,
  }),
} satisfies Record<HarnessName, z.ZodType>;
