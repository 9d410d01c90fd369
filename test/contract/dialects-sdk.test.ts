// docs/dialects.md knows every member that the official clients can send: a field that a newer client brings is decided on,
// and does not disappear in silence.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { dialectOf } from '../../services/llm-proxy/dialects/dialects.ts';
import type { DialectName } from '../../services/llm-proxy/domain/paths.ts';

const OPENAI = 'openai/resources';
const ANTHROPIC = '@anthropic-ai/sdk/resources';
const GOOGLE = '@google/genai/dist/genai.d.ts';

interface Known {
  readonly dialect: DialectName;
  readonly part: string;
  readonly file: string;
  readonly name: string;
  /** Members that say nothing by themselves: names, and the parts that other rows are about. */
  readonly plain?: readonly string[];
}

const FUNCTION = ['name', 'description', 'parameters', 'strict', 'type', 'input_schema', 'cache_control'];
const KNOWN: readonly Known[] = [
  {
    dialect: 'openai-chat',
    part: 'fields',
    file: `${OPENAI}/chat/completions/completions.d.ts`,
    name: 'ChatCompletionCreateParamsBase',
  },
  {
    dialect: 'openai-responses',
    part: 'fields',
    file: `${OPENAI}/responses/responses.d.ts`,
    name: 'ResponseCreateParamsBase',
  },
  {
    dialect: 'openai-responses',
    part: 'fields',
    file: `${OPENAI}/beta/responses/responses.d.ts`,
    name: 'ResponseCreateParamsBase',
  },
  {
    dialect: 'openai-responses',
    part: 'tools',
    file: `${OPENAI}/responses/responses.d.ts`,
    name: 'FunctionTool',
    plain: FUNCTION,
  },
  {
    dialect: 'anthropic-messages',
    part: 'fields',
    file: `${ANTHROPIC}/messages/messages.d.ts`,
    name: 'MessageCreateParamsBase',
  },
  {
    dialect: 'anthropic-messages',
    part: 'fields',
    file: `${ANTHROPIC}/beta/messages/messages.d.ts`,
    name: 'MessageCreateParamsBase',
  },
  {
    dialect: 'anthropic-messages',
    part: 'tools',
    file: `${ANTHROPIC}/beta/messages/messages.d.ts`,
    name: 'BetaTool',
    plain: FUNCTION,
  },
  { dialect: 'google-generate', part: 'generationConfig', file: GOOGLE, name: 'GenerationConfig' },
];

const textOf = (file: string): string =>
  readFileSync(new URL(`../../node_modules/${file}`, import.meta.url), 'utf8').replaceAll('\r', '');

/** The members of an interface that go into a body. */
function membersOf({ file, name }: Known): string[] {
  const text = textOf(file);
  const [, body = ''] = new RegExp(`interface ${name} \\{\\n([\\s\\S]*?)\\n\\}`).exec(text) ?? [];
  // A member stands behind its comment; what is nested has more in front.
  const members = body.matchAll(/(?:\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*)?^ {4}(\w+)\??:/gm);
  return [...members]
    .filter(([, comment = '']) => !comment.includes('Header param'))
    .map(([, , key = '']) => key);
}

describe('what the official clients can send', () => {
  for (const known of KNOWN) {
    const { dialect, part, name, file, plain = [] } = known;
    it(`${name} of ${file.split('/resources')[0]} has a row for each member in ${part} of ${dialect}`, () => {
      const members = membersOf(known);
      expect(members.length).to.be.at.least(5);
      const rows = dialectOf(dialect).features.filter((row) => row.part === part);
      const names = [...rows.map((row) => row.name), ...plain];
      expect(members.filter((member) => !names.includes(member))).to.deep.equal([]);
    });
  }

  it('the body of google-generate has a row for each member', () => {
    const [, body = ''] =
      /function generateContentConfigToMldev\([\s\S]*?\{\n([\s\S]*?)\n\}/.exec(
        textOf('@google/genai/dist/node/index.mjs'),
      ) ?? [];
    const members = [...body.matchAll(/setValueByPath\(parentObject, \['(\w+)'\]/g)].map(([, key]) => key);
    expect(members).to.include.members(['tools', 'safetySettings', 'systemInstruction']);
    const rows = dialectOf('google-generate').features.filter(({ part }) => part === 'fields');
    expect(members.filter((member) => !rows.some(({ name }) => name === member))).to.deep.equal([]);
  });
});
