// The openai-chat dialect: tool calls of a reply in the form in which the harness declared its tools.
import { arrayOf, countOf, isObject, type JsonObject, objectOf } from '../../domain/json.ts';
import { InputReader, inputOf } from '../custom-tools.ts';

/** How the tools of a request were declared. */
export interface Declared {
  /** Names of those that take free text. */
  readonly custom: ReadonlySet<string>;
  /** As `functions`: the call is answered as `function_call`. */
  readonly legacy: boolean;
}

/** Rewrite the calls of a whole reply's choice. */
export function showCalls(choice: JsonObject, { custom, legacy }: Declared): void {
  const message = objectOf(choice['message']);
  const calls = arrayOf(message['tool_calls']).map(objectOf);
  if (calls.length === 0) return;
  message['tool_calls'] = calls.map((call) => {
    const { name = '', arguments: args } = objectOf(call['function']);
    if (!custom.has(String(name))) return call;
    return { id: call['id'] ?? '', type: 'custom', custom: { name, input: inputOf(args) } };
  });
  if (legacy) showLegacy(choice, message);
}

/** Rewrites the calls of one choice's chunks. */
export class CallStream {
  readonly #declared: Declared;
  /** Of the custom calls, by index. */
  readonly #inputs = new Map<number, InputReader>();

  constructor(declared: Declared) {
    this.#declared = declared;
  }

  show(choice: JsonObject): void {
    const delta = objectOf(choice['delta']);
    const calls = arrayOf(delta['tool_calls'])
      .filter(isObject)
      .map((call) => this.#call(call));
    if (typeof choice['finish_reason'] === 'string') calls.push(...this.#rests());
    const message = calls.length === 0 ? delta : { ...delta, tool_calls: calls };
    choice['delta'] = message;
    if (this.#declared.legacy) showLegacy(choice, message);
  }

  #call(call: JsonObject): JsonObject {
    const { index, function: called, ...rest } = call;
    const at = countOf(index);
    const { name, arguments: args } = objectOf(called);
    const begins = typeof name === 'string' && this.#declared.custom.has(name);
    if (begins) this.#inputs.set(at, new InputReader());
    const reader = this.#inputs.get(at);
    if (reader === undefined) return call;
    const input = reader.push(typeof args === 'string' ? args : '');
    return {
      ...rest,
      index: at,
      ...(begins && { type: 'custom' }),
      custom: { ...(begins && { name }), input },
    };
  }

  /** What is left of custom calls that were broken off. */
  #rests(): JsonObject[] {
    return [...this.#inputs]
      .map(([index, reader]) => ({ index, custom: { input: reader.end() } }))
      .filter(({ custom }) => custom.input !== '');
  }
}

/** The legacy form has room for one call; what more there is stays in `tool_calls`. */
function showLegacy(choice: JsonObject, message: JsonObject): void {
  if (choice['finish_reason'] === 'tool_calls') choice['finish_reason'] = 'function_call';
  const calls = arrayOf(message['tool_calls']).map(objectOf);
  if (calls.length === 0) return;
  const isFirst = (call: JsonObject, i: number): boolean => countOf(call['index'] ?? i) === 0;
  const first = calls.find(isFirst);
  const others = calls.filter((call, i) => !isFirst(call, i));
  delete message['tool_calls'];
  if (first !== undefined) message['function_call'] = first['function'] ?? null;
  if (others.length > 0) message['tool_calls'] = others;
}
