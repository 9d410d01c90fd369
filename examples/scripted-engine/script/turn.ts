// A script's step as the model's turn in this conversation.

import { textOf } from '../prompt/messages.ts';
import type { Turn } from '../reply/format.ts';
import type { ChatMessage, ToolDefinition } from '../request.ts';
import type { ScriptCall, ScriptStep } from './schema.ts';
import { asShell } from './shell.ts';
import { bindCall } from './tools.ts';

/** What no tool of the harness can do is written as a fenced shell block: the way of harnesses without tools. */
export function toTurn(
  step: ScriptStep,
  tools: readonly ToolDefinition[],
  messages: readonly ChatMessage[] = [],
): Turn {
  const latest = messages.findLast(({ role }) => role === 'tool');
  const result = latest === undefined ? '' : textOf(latest);
  const bound = step.calls.map((wanted) => ({ wanted, call: bindCall(filled(wanted, result), tools) }));
  const blocks = bound.flatMap(({ wanted, call }) => (call === undefined ? [fence(wanted)] : []));
  return {
    think: step.think.trim(),
    text: [step.text.trim(), ...blocks].filter((part) => part !== '').join('\n\n'),
    calls: bound.flatMap(({ call }) => (call === undefined ? [] : [call])),
  };
}

/** `{{name}}` in the arguments of a named tool is that member of the last tool result. */
function filled(wanted: ScriptCall, result: string): ScriptCall {
  if (!('tool' in wanted)) return wanted;
  const given = JSON.stringify(wanted.arguments).replaceAll(/\{\{(\w+)\}\}/g, (whole, name) => {
    return new RegExp(`"${name}"\\s*:\\s*"([^"]*)"`).exec(result)?.[1] ?? whole;
  });
  return { ...wanted, arguments: JSON.parse(given) as Record<string, unknown> };
}

function fence(wanted: ScriptCall): string {
  return 'tool' in wanted ? '' : `\`\`\`bash\n${asShell(wanted)}\n\`\`\``;
}
