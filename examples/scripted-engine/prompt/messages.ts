// Messages as an engine hands them to the chat template.

import { writeCall } from '../reply/format.ts';
import type { ChatMessage } from '../request.ts';
import type { Switches } from '../switches.ts';

export interface TemplateMessage {
  role: string;
  content: string;
  reasoning_content?: string;
  tool_calls?: { function: { name: string; arguments: unknown } }[];
}

/** Content parts become one text, `developer` becomes `system`, arguments become objects. */
export function toTemplate(messages: readonly ChatMessage[], switches: Switches): TemplateMessage[] {
  return messages.map((message) => {
    const role = message.role === 'developer' ? 'system' : message.role;
    const content = textOf(message);
    if (role !== 'assistant') return { role, content };
    const calls = (message.tool_calls ?? []).map(({ function: { name, arguments: given } }) => ({
      function: { name, arguments: parsedArguments(given) },
    }));
    const turn: TemplateMessage = { role, ...withThinking(message, content, switches) };
    if (calls.length === 0) return turn;
    if (switches.tool_format === 'hermes') return { ...turn, tool_calls: calls };
    const written = calls.map((call) => writeCall(call.function, 'xml')).join('\n');
    return { ...turn, content: turn.content === '' ? written : `${turn.content}\n${written}` };
  });
}

/** As Qwen's models for images have one, whose size would say how many pads there are. */
const IMAGE = '<|vision_start|><|image_pad|><|vision_end|>';

export function textOf(message: ChatMessage): string {
  const { content } = message;
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => (part.type === 'text' ? part.text : IMAGE)).join('\n');
}

function withThinking(
  message: ChatMessage,
  content: string,
  { thinking_history }: Switches,
): Pick<TemplateMessage, 'content' | 'reasoning_content'> {
  const thinking = message.reasoning_content ?? message.reasoning ?? '';
  if (thinking === '') return { content };
  switch (thinking_history) {
    case 'template':
      return { content, reasoning_content: thinking };
    case 'stripped':
      return { content };
    case 'kept':
      // An empty reasoning_content keeps the template from looking for thinking in the text.
      return { content: `<think>\n${thinking}\n</think>\n\n${content}`, reasoning_content: '' };
  }
}

function parsedArguments(given: unknown): unknown {
  if (typeof given !== 'string') return given;
  try {
    const parsed: unknown = JSON.parse(given);
    return typeof parsed === 'object' && parsed !== null ? parsed : given;
  } catch {
    return given;
  }
}
