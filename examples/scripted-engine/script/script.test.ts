import { expect } from 'chai';
import type { Call } from '../reply/format.ts';
import type { ChatMessage, ToolDefinition } from '../request.ts';
import { BASH, user } from '../testing.ts';
import { findPlace, nextStep } from './play.ts';
import { DEFAULT_SCRIPT, parseScript, type ScriptCall } from './schema.ts';
import { toTurn } from './turn.ts';

const SCRIPT = `
when: calculator
variants:
  - { name: a, share: 3, steps: [{ text: a0 }, { text: a1 }] }
  - { name: b, steps: [{ text: b0 }] }
after: { text: over }
`;
const tool = (
  name: string,
  properties: Record<string, unknown>,
  required: string[] = [],
): ToolDefinition => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties, required } },
});
const string = { type: 'string' };
const bind = (wanted: ScriptCall, tools: ToolDefinition[]): Call =>
  toTurn({ think: '', text: '', calls: [wanted] }, tools).calls[0]!;

describe('a script', () => {
  const script = parseScript(SCRIPT, 'x.yaml');
  const turns = (count: number): ChatMessage[] => [
    user('Mend the Calculator.'),
    ...Array.from({ length: count }, (): ChatMessage[] => [
      { role: 'assistant', content: 'x' },
      user('y'),
    ]).flat(),
  ];
  const textAt = (messages: ChatMessage[], seed: number, scripts = [script]): string =>
    nextStep(findPlace(scripts, messages), { messages }, seed).text;

  it('goes on with each assistant turn, to its end', () => {
    const texts = [0, 1, 2, 3].map((count) => textAt(turns(count), 0));
    expect(texts).to.deep.equal(['a0', 'a1', 'over', 'over']);
  });

  it('chooses its variant by the seed', () => {
    const texts = [0, 1, 2, 3, 4, 7, -1].map((seed) => textAt(turns(0), seed));
    expect(texts).to.deep.equal(['a0', 'a0', 'a0', 'b0', 'a0', 'b0', 'b0']);
  });

  it('is played where it fits a user message, else the default one', () => {
    expect(findPlace([script], [user('Something else.'), user('calculator')]).script).to.equal(script);
    expect(findPlace([script], [user('Something else.')]).script).to.equal(DEFAULT_SCRIPT);
    const everywhere = parseScript('variants: [{ name: x, steps: [{ text: y }] }]', 'y.yaml');
    expect(findPlace([script, everywhere], [user('Something else.')]).script).to.equal(everywhere);
  });

  it('begins anew with each message that it fits, and gives way to one that stands before it', () => {
    const second = parseScript(
      'when: screen\nvariants: [{ name: x, steps: [{ text: s0 }, { text: s1 }] }]',
      'y.yaml',
    );
    const session = [...turns(2), user('Now its screen.')];
    const scripts = [second, script];
    expect(textAt([...turns(2), user('The calculator again.')], 0)).to.equal('a0');
    expect(textAt(session, 0, scripts)).to.equal('s0');
    expect(textAt([...session, { role: 'assistant', content: 'x' }], 0, scripts)).to.equal('s1');
  });

  it('answers an aside where all that it names fits, and counts no turn for it', () => {
    const asides = parseScript(
      `${SCRIPT}\nasides: [{ system: title, text: t }, { last: sum up, tools: false, text: s }]`,
      'x.yaml',
    );
    const next = (messages: ChatMessage[], tools: ToolDefinition[] = []): string =>
      nextStep(findPlace([asides], messages), { messages, tools }, 0).text;
    const asked = [...turns(1), user('Sum up.')];
    expect(next(asked)).to.equal('s');
    expect(next(asked, [BASH])).to.equal('a1');
    expect(next([{ role: 'system', content: 'Write a title.' }, ...turns(0)])).to.equal('t');
  });

  it('is refused with every fault and where it is', () => {
    const broken =
      'sed: 1\nvariants: [{ name: x, steps: [{}, { text: a, calls: [{ fly: b }] }] }]\nwhen: "("';
    expect(() => parseScript(broken, 'z.yaml'))
      .to.throw(/z\.yaml/)
      .with.property('message')
      .that.matches(/sed/)
      .and.matches(/steps\[0\]/)
      .and.matches(/calls\[0\]/)
      .and.matches(/when/);
    expect(() => parseScript('a: [', 'z.yaml')).to.throw('z.yaml');
  });
});

describe('a scripted call', () => {
  const pi = [
    tool('read', { path: string }, ['path']),
    BASH,
    tool('edit', {
      path: string,
      edits: { type: 'array', items: { type: 'object', properties: { oldText: string, newText: string } } },
    }),
    tool('write', { path: string, content: string }),
  ];
  const edit = { edit: { path: 'f', old: 'a', new: 'b' } };

  it('uses the tools of pi', () => {
    expect(bind({ shell: 'ls' }, pi)).to.deep.equal({ name: 'bash', arguments: { command: 'ls' } });
    expect(bind({ read: 'f' }, pi)).to.deep.equal({ name: 'read', arguments: { path: 'f' } });
    expect(bind(edit, pi)).to.deep.equal({
      name: 'edit',
      arguments: { path: 'f', edits: [{ oldText: 'a', newText: 'b' }] },
    });
  });

  it('uses tools and arguments of other names, and fills what they require', () => {
    const argv = tool('shell', { command: { type: 'array' }, timeout: { type: 'integer' } }, [
      'command',
      'timeout',
    ]);
    expect(bind({ shell: 'ls' }, [argv]).arguments).to.deep.equal({
      command: ['bash', '-lc', 'ls'],
      timeout: 1,
    });
    const several = tool('run_commands', { commands: { type: 'array', items: string } }, ['commands']);
    expect(bind({ shell: 'ls -la' }, [several]).arguments).to.deep.equal({ commands: ['ls -la'] });
    const replace = tool(
      'replace',
      { file_path: string, old_string: string, new_string: string, instruction: string },
      ['instruction'],
    );
    expect(bind(edit, [replace]).arguments).to.deep.equal({
      file_path: 'f',
      old_string: 'a',
      new_string: 'b',
      instruction: 'as planned',
    });
    const exec = tool('exec_command', { cmd: string });
    expect(bind({ shell: 'ls' }, [exec])).to.deep.equal({ name: 'exec_command', arguments: { cmd: 'ls' } });
  });

  it('goes through the shell where there is no tool for it, and into the text where there is no shell', () => {
    expect(bind({ read: "it's" }, [BASH]).arguments).to.deep.equal({ command: `cat 'it'\\''s'` });
    const turn = toTurn({ think: '', text: 'Look.', calls: [{ read: 'f' }] }, []);
    expect(turn).to.deep.equal({ think: '', text: "Look.\n\n```bash\ncat 'f'\n```", calls: [] });
  });

  it('takes over what the last tool result says', () => {
    const wanted = { tool: 'wait', arguments: { targets: ['{{agent_id}}', '{{other}}'] } };
    const messages: ChatMessage[] = [{ role: 'tool', content: '{"agent_id": "a1"}' }, user('y')];
    const { calls } = toTurn({ think: '', text: '', calls: [wanted] }, [], messages);
    expect(calls[0]?.arguments).to.deep.equal({ targets: ['a1', '{{other}}'] });
  });

  it('knows a tool by its name in capitals too', () => {
    const bash = { ...BASH, function: { ...BASH.function, name: 'Bash' } };
    expect(bind({ shell: 'ls' }, [bash])).to.deep.equal({ name: 'Bash', arguments: { command: 'ls' } });
  });

  it('stands as it is when it names its tool', () => {
    const wanted = { tool: 'fly', arguments: { to: 'moon' } };
    expect(bind(wanted, [])).to.deep.equal({ name: 'fly', arguments: { to: 'moon' } });
  });
});
