import { expect } from 'chai';
import { type Headers, ROLE_RULES, roleOf } from './roles.ts';

const conversation = (system: unknown) =>
  [
    { role: 'system', content: system },
    { role: 'user', content: 'x' },
  ] as never;

describe('roles', () => {
  it('are main without a sign of another', () => {
    expect(roleOf({}, conversation('You write code.'))).to.deep.equal({ role: 'main', rule: 'default' });
    expect(roleOf({}, [{ role: 'user', content: 'You are a title generator' }])).to.include({ role: 'main' });
    expect(roleOf({ 'x-openai-subagent': 'compact' }, [])).to.include({ role: 'main' });
    expect(roleOf({ 'x-interaction-type': 'conversation-compaction' }, [])).to.include({ role: 'main' });
  });

  it('are told by headers of sub-agents', () => {
    const cases: [Headers, string][] = [
      [{ 'x-openai-subagent': 'collab_spawn', 'x-codex-parent-thread-id': 't' }, 'codex-subagent'],
      [{ 'x-codex-parent-thread-id': 't' }, 'codex-parent-thread'],
      [{ 'x-claude-code-agent-id': 'a' }, 'claude-agent'],
      [{ 'x-parent-session-id': 'ses_1' }, 'opencode-parent-session'],
      [{ 'x-interaction-type': 'conversation-subagent' }, 'copilot-subagent'],
    ];
    for (const [headers, rule] of cases)
      expect(roleOf(headers, conversation('a'))).to.deep.equal({ role: 'sub', rule });
  });

  it('are told by the words of a sub-agent', () => {
    const sub = 'You are a general-purpose subagent working for a parent agent. Complete only the task.';
    expect(roleOf({}, conversation(sub))).to.deep.equal({ role: 'sub', rule: 'qwen-subagent' });
  });

  it('are told by a tool that only a sub-agent has', () => {
    const gemini = conversation('You are Gemini CLI, an autonomous CLI agent.');
    const tools = ['read_file', 'complete_task'].map((name) => ({ type: 'function', function: { name } }));
    expect(roleOf({}, gemini, tools)).to.deep.equal({ role: 'sub', rule: 'gemini-subagent' });
    expect(roleOf({}, gemini, tools.slice(0, 1))).to.include({ role: 'main' });
    expect(roleOf({}, conversation('You write code.'), tools)).to.include({ role: 'main' });
  });

  it('are told by the words of prompts for titles and memories', () => {
    const title = 'You are a title generator. You output ONLY a thread title.';
    expect(roleOf({}, conversation(title))).to.deep.equal({ role: 'side', rule: 'opencode-title' });
    const parts = [{ type: 'text', text: 'You act as the managed memory extraction subagent.' }];
    expect(roleOf({}, conversation(parts))).to.deep.equal({ role: 'side', rule: 'qwen-memory' });
  });

  it('have a rule each, with a name of its own', () => {
    const names = ROLE_RULES.map(({ rule }) => rule);
    expect(new Set(names).size).to.equal(names.length);
  });
});
