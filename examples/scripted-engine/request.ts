// The body of a chat completion as both engines take it; what is not read here is ignored, as engines do.
import { z } from 'zod';
import { RequestFault } from './faults.ts';

const CHOICES_MAX = 16;
const flag = z.boolean().nullish();

const textPart = z.looseObject({ type: z.literal('text'), text: z.string() });
/** Where it is, and what it shows, is not looked at. */
const imagePart = z.looseObject({
  type: z.literal('image_url'),
  image_url: z.looseObject({ url: z.string() }),
});
const toolCall = z.looseObject({
  function: z.looseObject({
    name: z.string(),
    arguments: z.union([z.string(), z.record(z.string(), z.unknown())]),
  }),
});
const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z.union([z.string(), z.array(z.union([textPart, imagePart]))]).nullish(),
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  tool_calls: z.array(toolCall).nullish(),
});
const tool = z.looseObject({
  type: z.literal('function'),
  function: z.looseObject({ name: z.string(), parameters: z.record(z.string(), z.unknown()).nullish() }),
});

const chatSchema = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(message).min(1),
  tools: z.array(tool).nullish(),
  tool_choice: z.unknown().optional(),
  n: z.int().min(1).max(CHOICES_MAX).nullish(),
  seed: z.int().nullish(),
  temperature: z.number().nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  stream: flag,
  stream_options: z.looseObject({ include_usage: flag }).nullish(),
  logprobs: flag,
  top_logprobs: z.int().min(0).max(20).nullish(),
  chat_template_kwargs: z.record(z.string(), z.unknown()).nullish(),
  add_generation_prompt: flag,
  input_ids: z.array(z.int().min(0)).nullish(),
  return_token_ids: flag,
  return_tokens_as_token_ids: flag,
  return_prompt_token_ids: flag,
  return_meta_info: flag,
  verbose: flag,
  return_input_ids_in_sglext: flag,
  return_output_ids_in_sglext: flag,
  return_routed_experts: flag,
  routed_experts_start_len: z.int().min(0).nullish(),
  routed_experts_prompt_start: z.int().min(0).nullish(),
});
export type ChatRequest = z.output<typeof chatSchema>;
export type ChatMessage = ChatRequest['messages'][number];
export type ToolDefinition = z.output<typeof tool>;

const generateSchema = z.looseObject({
  model: z.string().nullish(),
  token_ids: z.array(z.int().min(0)).min(1),
  sampling_params: z.looseObject({
    n: z.int().min(1).max(CHOICES_MAX).nullish(),
    seed: z.int().nullish(),
    max_tokens: z.int().min(1).nullish(),
    stop: z.union([z.string(), z.array(z.string())]).nullish(),
    logprobs: z.int().min(0).nullish(),
    routed_experts_prompt_start: z.int().min(0).nullish(),
  }),
});
export type GenerateRequest = z.output<typeof generateSchema>;

const completionSchema = z.looseObject({
  prompt: z.array(z.int().min(0)).min(1),
  n_predict: z.int().nullish(),
  seed: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
});
export type CompletionRequest = z.output<typeof completionSchema>;

const generatedLogprob = z.looseObject({ token_id: z.int().min(0), logprob: z.number() });
const generatedSchema = z.looseObject({
  request_id: z.string(),
  model: z.string(),
  choices: z.array(
    z.looseObject({
      index: z.int().min(0),
      token_ids: z.array(z.int().min(0)),
      finish_reason: z.string(),
      stop_reason: z.union([z.string(), z.int()]).nullish(),
      logprobs: z.looseObject({ content: z.array(generatedLogprob) }).nullish(),
    }),
  ),
});
const derenderSchema = z.looseObject({ generate_response: generatedSchema, chat_request: chatSchema });
export type DerenderRequest = z.output<typeof derenderSchema>;

const promptSchema = z.looseObject({ prompt: z.string() }).transform(({ prompt }) => prompt);
const contentSchema = z.looseObject({ content: z.string() }).transform(({ content }) => content);
const tokenizeSchema = z.union([promptSchema, contentSchema, chatSchema]);
const detokenizeSchema = z.looseObject({ tokens: z.array(z.int().min(0)) });
const versionSchema = z.looseObject({ new_version: z.string().min(1) });

export const readChat = (body: string): ChatRequest => read(chatSchema, body);
export const readGenerate = (body: string): GenerateRequest => read(generateSchema, body);
export const readCompletion = (body: string): CompletionRequest => read(completionSchema, body);
export const readDerender = (body: string): DerenderRequest => read(derenderSchema, body);
/** A plain prompt, or a conversation. */
export const readTokenize = (body: string): string | ChatRequest => read(tokenizeSchema, body);
export const readDetokenize = (body: string): number[] => read(detokenizeSchema, body).tokens;
export const readNewVersion = (body: string): string => read(versionSchema, body).new_version;

/** The tools that the reply may call. */
export function toolsOf(request: Pick<ChatRequest, 'tools' | 'tool_choice'>): readonly ToolDefinition[] {
  return request.tool_choice === 'none' ? [] : (request.tools ?? []);
}

/** Strings that end a reply. */
export function stopsOf({ stop }: Pick<ChatRequest, 'stop'>): readonly string[] {
  return typeof stop === 'string' ? [stop] : (stop ?? []);
}

export function tokensMaxOf(request: ChatRequest): number | undefined {
  return request.max_completion_tokens ?? request.max_tokens ?? undefined;
}

function read<T extends z.ZodType>(schema: T, body: string): z.output<T> {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    throw new RequestFault(400, `the body is not JSON: ${(error as Error).message}`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new RequestFault(400, z.prettifyError(parsed.error));
}
