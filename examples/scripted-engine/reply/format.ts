// A turn as the model would write it: thinking, text, tool calls.
import type { Switches } from '../switches.ts';

export interface Call {
  readonly name: string;
  readonly arguments: unknown;
}

export interface Turn {
  readonly think: string;
  readonly text: string;
  readonly calls: readonly Call[];
}

/** Without the end token. */
export function writeTurn(turn: Turn, format: Switches['tool_format']): string {
  const think = turn.think === '' ? '' : `<think>\n${turn.think}\n</think>\n\n`;
  const calls = turn.calls.map((call) => writeCall(call, format));
  return think + [turn.text, ...calls].filter((part) => part !== '').join('\n');
}

export function writeCall(call: Call, format: Switches['tool_format']): string {
  const inner =
    format === 'xml' ? xml(call) : `{"name": "${call.name}", "arguments": ${spaced(call.arguments)}}`;
  return `<tool_call>\n${inner}\n</tool_call>`;
}

function xml({ name, arguments: given }: Call): string {
  const fields = typeof given === 'object' && given !== null ? given : { arguments: given };
  const parameters = Object.entries(fields).map(([key, value]) => {
    const text = typeof value === 'string' ? value : spaced(value);
    return `<parameter=${key}>\n${text}\n</parameter>\n`;
  });
  return `<function=${name}>\n${parameters.join('')}</function>`;
}

/** JSON as Python and the chat template write it: a space after each comma and colon. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}: ${spaced(field)}`);
  return `{${fields.join(', ')}}`;
}
