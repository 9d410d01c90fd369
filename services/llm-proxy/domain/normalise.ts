// Rules that take out of a request what changes from call to call without saying anything to the model. Each has a name
// by which it can be switched off (`gateway.nodes[].normalise`), and is named on the records that it changed.
import { isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';
import { Notes, sharedStart } from './notes.ts';

/** The message without what the rule takes out; the same object where there is nothing. Undefined: nothing is left. */
type Rule = (message: JsonObject) => Left;
type Left = JsonObject | undefined;

/** One that goes by what the session has said so far too. */
interface SessionRule {
  /** What it may change. */
  readonly is: (message: JsonObject) => boolean;
  readonly change: (message: JsonObject, session: SessionRules) => JsonObject;
}

/** What rules need to know of the session. */
export interface SessionRules {
  /** The message with its tool calls as the model wrote them. */
  readonly restore: (message: JsonObject) => JsonObject;
  /** The message without a name, where the model said it. */
  readonly unnamed: (message: JsonObject) => JsonObject;
}

const RULES = {
  /** Claude Code's first system block, whose hash differs in each turn. */
  'billing-header': withoutBillingHeader,
  /** Marks for a provider's prompt cache, which move from message to message. */
  'cache-control': withoutCacheControl,
  /** Keys that a client keeps for itself and sends along at times: Copilot's, LiteLLM's, and what OpenAI's own has parsed. */
  'private-keys': withoutPrivateKeys,
} as const satisfies Record<string, Rule>;

const OF_SESSION = {
  /** Arguments of the model's own tool calls that the client has parsed and written again. */
  'tool-arguments': {
    is: (message) => Array.isArray(message['tool_calls']),
    change: (message, { restore }) => restore(message),
  },
  /** The agent's name, which LangChain, Semantic Kernel and others write on what the model said without one. */
  'reply-names': {
    is: ({ role, name }) => role === 'assistant' && typeof name === 'string',
    change: (message, { unnamed }) => unnamed(message),
  },
} as const satisfies Record<string, SessionRule>;

/** What is said as the system behind the first message is the user's, for engines that would refuse it: `late-system.ts`. */
export const LATE_SYSTEM = 'late-system';

export type RuleName = keyof typeof RULES | keyof typeof OF_SESSION | typeof LATE_SYSTEM;
const PLAIN = Object.entries(RULES) as [RuleName, Rule][];
const SESSIONS = Object.entries(OF_SESSION) as [RuleName, SessionRule][];
export const RULE_NAMES: readonly RuleName[] = [
  ...[...PLAIN, ...SESSIONS].map(([name]) => name),
  LATE_SYSTEM,
];

export interface Normalised {
  readonly messages: readonly JsonObject[];
  /** Rules that changed something, in the order of RULE_NAMES. */
  readonly by: readonly RuleName[];
}

/** Apply the rules that go by no engine; a request that none of them changes keeps its very messages. */
export function normalised(
  messages: readonly JsonObject[],
  names: readonly RuleName[],
  session: SessionRules,
  notes = new Notes(),
): Normalised {
  let result = messages;
  const by: RuleName[] = [];
  const apply = (name: RuleName, rule: (messages: readonly JsonObject[]) => readonly Left[]): void => {
    if (!names.includes(name)) return;
    const next = kept(result, rule(result));
    if (next === result) return;
    result = next;
    by.push(name);
  };
  for (const [name, rule] of PLAIN) apply(name, (list) => notes.each(list, rule));
  for (const [name, { is, change }] of SESSIONS) {
    apply(name, (list) => {
      const its = notes.each(list, is);
      return its.includes(true) ? list.map((one, i) => (its[i] === true ? change(one, session) : one)) : list;
    });
  }
  return { messages: result, by };
}

/** The same list where all is as it was, or nothing were left. */
function kept(messages: readonly JsonObject[], left: readonly Left[]): readonly JsonObject[] {
  if (sharedStart(messages, left) === messages.length) return messages;
  const some = left.filter((one) => one !== undefined);
  return some.length === 0 ? messages : some;
}

const BILLING = /^x-anthropic-billing-header:[^\n]*(?:\n+|$)/;

function withoutBillingHeader(message: JsonObject): JsonObject | undefined {
  if (message['role'] !== 'system') return message;
  const { content } = message;
  if (typeof content === 'string') {
    if (!BILLING.test(content)) return message;
    const text = content.replace(BILLING, '');
    return text === '' ? undefined : { ...message, content: text };
  }
  if (!Array.isArray(content)) return message;
  const parts = content.filter((part) => !(isObject(part) && BILLING.test(String(part['text']))));
  if (parts.length === content.length) return message;
  return parts.length === 0 ? undefined : { ...message, content: parts };
}

function withoutCacheControl(message: JsonObject): JsonObject {
  const { content } = message;
  const inParts = Array.isArray(content) && content.some(isMarked);
  if (!inParts && !isMarked(message)) return message;
  const { cache_control: _, ...rest } = message;
  return inParts ? { ...rest, content: content.map(unmarked) } : rest;
}

const isMarked = (value: JsonValue): boolean => isObject(value) && 'cache_control' in value;

function unmarked(part: JsonValue): JsonValue {
  if (!isObject(part)) return part;
  const { cache_control: _, ...rest } = part;
  return rest;
}

const isPrivate = (key: string): boolean =>
  key.startsWith('__') || key === 'provider_specific_fields' || key === 'parsed';

function withoutPrivateKeys(message: JsonObject): JsonObject {
  const bare = Object.keys(message).some(isPrivate)
    ? Object.fromEntries(Object.entries(message).filter(([key]) => !isPrivate(key)))
    : message;
  const { tool_calls: calls } = bare;
  return Array.isArray(calls) && calls.some(isParsed) ? { ...bare, tool_calls: calls.map(unparsed) } : bare;
}

const isParsed = (call: JsonValue): boolean => 'parsed_arguments' in objectOf(objectOf(call)['function']);

function unparsed(call: JsonValue): JsonValue {
  if (!isParsed(call)) return call;
  const { parsed_arguments: _, ...named } = objectOf(objectOf(call)['function']);
  return { ...objectOf(call), function: named };
}
