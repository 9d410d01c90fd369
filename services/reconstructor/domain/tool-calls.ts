// Replies whose tool calls cannot be read, told from the reply as it was recorded.

/** A line that begins as a tool call does in a model's own text. */
const WRITTEN_CALL = /^\s*<(?:tool_call>|function=)/;
const FENCE = /^\s*(?:```|~~~)/;

type ToolCalls = 'none' | 'readable' | 'invalid';

/** The replies of an attempt. A body is stored with the first record that names it. */
export class Replies {
  readonly #toolCalls = new Map<string, ToolCalls>();

  add(bodies: Readonly<Record<string, string>>): void {
    for (const [digest, body] of Object.entries(bodies)) {
      const message = body.includes('"assistant"') ? objectOf(body) : undefined;
      if (message?.['role'] === 'assistant') this.#toolCalls.set(digest, toolCallsOf(message));
    }
  }

  /** It has one that cannot be read, or ended for tool calls and has none. False for a reply that was not recorded. */
  hasInvalidCall(reply: string, finishReason: string): boolean {
    const calls = this.#toolCalls.get(reply);
    return calls === 'invalid' || (calls === 'none' && finishReason === 'tool_calls');
  }
}

function toolCallsOf({ tool_calls: calls, content }: Record<string, unknown>): ToolCalls {
  if (Array.isArray(calls) && calls.length > 0) return calls.every(isReadable) ? 'readable' : 'invalid';
  return typeof content === 'string' && hasWrittenCall(content) ? 'invalid' : 'none';
}

function isReadable(call: unknown): boolean {
  const { function: named } = (call ?? {}) as { function?: { name?: unknown; arguments?: unknown } };
  if (typeof named?.name !== 'string' || named.name === '') return false;
  // A call without arguments has an empty text with some engines.
  return (
    named.arguments === '' || (typeof named.arguments === 'string' && objectOf(named.arguments) !== undefined)
  );
}

/** Outside of fenced code, where it may be an example. */
function hasWrittenCall(text: string): boolean {
  let fenced = false;
  for (const line of text.split('\n')) {
    if (FENCE.test(line)) fenced = !fenced;
    else if (!fenced && WRITTEN_CALL.test(line)) return true;
  }
  return false;
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
