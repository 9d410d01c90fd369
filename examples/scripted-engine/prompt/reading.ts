// The conversation that a prompt's text holds: what a call that comes as token ids is about.
import type { ChatMessage, ToolDefinition } from '../request.ts';

export interface ReadPrompt {
  readonly messages: ChatMessage[];
  readonly tools: ToolDefinition[];
}

const TURN = /<\|im_start\|>(\w+)\n([\s\S]*?)(?:<\|im_end\|>|$)/g;
const TOOLS = /\n*# Tools\n[\s\S]*<tools>\n([\s\S]*?)\n<\/tools>[\s\S]*$/;
const RESPONSE = /\n?<tool_response>\n([\s\S]*?)\n<\/tool_response>/g;

/** Prompts as Qwen3's template writes them; the generation prompt at the end is no message. */
export function readPrompt(text: string): ReadPrompt {
  const messages: ChatMessage[] = [];
  const tools: ToolDefinition[] = [];
  for (const [turn, role = '', content = ''] of text.matchAll(TURN)) {
    if (role === 'system') messages.push(...systemOf(content, tools));
    else if (role === 'user') messages.push(...userOf(content));
    else if (turn.endsWith('<|im_end|>')) messages.push({ role: 'assistant', content });
  }
  return { messages, tools };
}

function systemOf(content: string, tools: ToolDefinition[]): ChatMessage[] {
  const listed = TOOLS.exec(content)?.[1];
  for (const line of listed?.split('\n') ?? []) tools.push(JSON.parse(line) as ToolDefinition);
  const said = content.replace(TOOLS, '');
  return said === '' ? [] : [{ role: 'system', content: said }];
}

function userOf(content: string): ChatMessage[] {
  const responses = [...content.matchAll(RESPONSE)].map(([, said = '']) => said);
  if (responses.length === 0 || content.replace(RESPONSE, '') !== '') return [{ role: 'user', content }];
  return responses.map((said) => ({ role: 'tool', content: said }));
}
