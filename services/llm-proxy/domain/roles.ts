// Whose call it is: of the session's main conversation, of a sub-agent, or on the side of the task (titles, memories).
// A harness tells by a header or by the words of its own prompts; both were seen in real CLIs (docs/dialects.md).
import { isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';

export type Role = 'main' | 'sub' | 'side';

export interface RoleFound {
  readonly role: Role;
  /** Name of the rule, for the record. */
  readonly rule: string;
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

interface HeaderRule {
  readonly rule: string;
  readonly role: Role;
  readonly header: string;
  /** Unset: any value. */
  readonly value?: RegExp;
}

/** The first one that applies counts. */
const HEADER_RULES: readonly HeaderRule[] = [
  { rule: 'codex-subagent', role: 'sub', header: 'x-openai-subagent', value: /^(?!compact)/ },
  { rule: 'codex-parent-thread', role: 'sub', header: 'x-codex-parent-thread-id' },
  { rule: 'claude-agent', role: 'sub', header: 'x-claude-code-agent-id' },
  { rule: 'opencode-parent-session', role: 'sub', header: 'x-parent-session-id' },
  { rule: 'copilot-subagent', role: 'sub', header: 'x-interaction-type', value: /subagent/ },
];

interface WordRule {
  readonly rule: string;
  readonly role: Role;
  /** In the first system or developer message, of which the first WORDS_CHARS_MAX characters count. */
  readonly words: RegExp;
  /** A tool that is offered, too; unset: any or none. */
  readonly tool?: string;
}

const WORDS_CHARS_MAX = 4_096;

const WORD_RULES: readonly WordRule[] = [
  { rule: 'qwen-subagent', role: 'sub', words: /^You are an? .{0,40}subagent working for a parent agent\b/ },
  // Its prompt begins as the main one's does.
  { rule: 'gemini-subagent', role: 'sub', words: /^You are Gemini CLI\b/, tool: 'complete_task' },
  { rule: 'opencode-title', role: 'side', words: /^You are a title generator\b/ },
  { rule: 'qwen-memory', role: 'side', words: /\bmanaged memory (extraction|dream)/i },
  { rule: 'claude-title', role: 'side', words: /^(Generate|Write) a (concise|short),? .{0,40}title\b/i },
];

const MAIN: RoleFound = { role: 'main', rule: 'default' };

export const ROLE_RULES: readonly { readonly rule: string; readonly role: Role }[] = [
  ...HEADER_RULES,
  ...WORD_RULES,
  MAIN,
];

export function roleOf(
  headers: Headers,
  messages: readonly JsonObject[],
  tools: readonly JsonObject[] = [],
): RoleFound {
  for (const { rule, role, header, value = /./ } of HEADER_RULES) {
    const found = headers[header];
    if (typeof found === 'string' && value.test(found)) return { role, rule };
  }
  const [first] = messages;
  if (first === undefined || (first['role'] !== 'system' && first['role'] !== 'developer')) return MAIN;
  const text = textIn(first['content']);
  const offers = (name: string): boolean => tools.some((tool) => objectOf(tool['function'])['name'] === name);
  const { rule, role } =
    WORD_RULES.find(({ words, tool }) => words.test(text) && (tool === undefined || offers(tool))) ?? MAIN;
  return { role, rule };
}

function textIn(content: JsonValue | undefined): string {
  const parts = Array.isArray(content) ? content : [content ?? null];
  const texts = parts.map((part) => (isObject(part) ? part['text'] : part));
  return texts
    .filter((text) => typeof text === 'string')
    .join('\n')
    .slice(0, WORDS_CHARS_MAX);
}
