// The assistant message of a streamed reply, put together from what the harness was sent.
import { arrayOf, countOf, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';

/** Takes the deltas of the one choice in order. */
export class ReplyAssembler {
  readonly #message: JsonObject = { role: 'assistant', content: null };
  readonly #calls = new Map<number, JsonObject>();

  add(delta: JsonObject): void {
    for (const key in delta) {
      const value = delta[key] ?? null;
      if (key === 'tool_calls') for (const call of arrayOf(value)) this.#addCall(objectOf(call));
      else if (key !== 'role') join(this.#message, key, value);
    }
  }

  get message(): JsonObject {
    if (this.#calls.size === 0) return this.#message;
    return { ...this.#message, tool_calls: [...this.#calls.values()] };
  }

  /** A copy of what there is until now, its calls with the index by which further deltas name them. */
  get soFar(): JsonObject {
    const calls = [...this.#calls].map(([index, call]) => ({ index, ...call }));
    return structuredClone({ ...this.#message, ...(calls.length > 0 && { tool_calls: calls }) });
  }

  #addCall(delta: JsonObject): void {
    const index = countOf(delta['index']);
    const call = this.#calls.get(index) ?? {};
    this.#calls.set(index, call);
    for (const [key, value] of Object.entries(delta)) {
      if (key === 'function' && isObject(value)) call[key] = joined(objectOf(call[key]), value);
      // Id and type are whole wherever they stand; only function parts are cut into pieces.
      else if (key !== 'index' && value !== null) call[key] = value;
    }
  }
}

function joined(target: JsonObject, delta: JsonObject): JsonObject {
  for (const [key, value] of Object.entries(delta)) join(target, key, value);
  return target;
}

function join(target: JsonObject, key: string, value: JsonValue): void {
  const before = target[key];
  if (typeof value === 'string' && typeof before === 'string') target[key] = before + value;
  else if (value !== null) target[key] = value;
  else target[key] ??= null;
}

/** Whether a delta holds something that was sampled. */
export const saysSomething = (delta: JsonObject): boolean =>
  Object.entries(delta).some(([key, value]) => key !== 'role' && !isBlank(value));

const isBlank = (value: JsonValue): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0);

const FINISH_REASONS = ['stop', 'length', 'tool_calls', 'abort'];

/** The engine's finish reason in the record's words. */
export function finishReasonOf(word: string): string {
  if (word === 'function_call') return 'tool_calls';
  return FINISH_REASONS.includes(word) ? word : 'stop';
}
