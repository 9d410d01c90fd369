// A script's step as the model's turn in this conversation.
import type { Turn } from '../reply/format.ts';
import type { ToolDefinition } from '../request.ts';
import type { ScriptCall, ScriptStep } from './schema.ts';
import { asShell } from './shell.ts';
import { bindCall } from './tools.ts';

/** What no tool of the harness can do is written as a fenced shell block: the way of harnesses without tools. */
export function toTurn(step: ScriptStep, tools: readonly ToolDefinition[]): Turn {
  const bound = step.calls.map((wanted) => ({ wanted, call: bindCall(wanted, tools) }));
  const blocks = bound.flatMap(({ wanted, call }) => (call === undefined ? [fence(wanted)] : []));
  return {
    think: step.think.trim(),
    text: [step.text.trim(), ...blocks].filter((part) => part !== '').join('\n\n'),
    calls: bound.flatMap(({ call }) => (call === undefined ? [] : [call])),
  };
}

function fence(wanted: ScriptCall): string {
  return 'tool' in wanted ? '' : `\`\`\`bash\n${asShell(wanted)}\n\`\`\``;
}
