import { expect } from 'chai';
import { seeded } from '../../../test/support/laws.ts';
import type { GoesOn } from '../domain/attempt-state.ts';
import { arrayOf, type JsonObject, objectOf } from '../domain/json.ts';
import { SKETCH_TOOLS } from '../domain/template-sketch.ts';
import { Bridges } from './bridges.ts';
import type { Render, Rendering } from './renderer.ts';

// Templates in small, each with one way of real ones; a character is an id, and two of them stand for special tokens.
const START = '\uE000';
const END = '\uE001';

interface Template {
  /** What stands between the messages. */
  readonly before?: (message: JsonObject, i: number, all: Rendering) => string;
  /** The inside of an assistant's turn. */
  readonly turn: (message: JsonObject, i: number, all: Rendering) => string;
  readonly tool?: (message: JsonObject) => string;
}

const said = ({ content }: JsonObject): string => (typeof content === 'string' ? content : '');
const callsIn = (message: JsonObject): string[] =>
  arrayOf(message['tool_calls']).map((call) => {
    const { name, arguments: given } = objectOf(objectOf(call)['function']);
    return `<call>${name}${given}</call>`;
  });
const idsIn = (message: JsonObject): string[] =>
  arrayOf(message['tool_calls']).map((call) => `#${objectOf(call)['id']}`);
const lastUser = ({ messages }: Rendering): number =>
  messages.findLastIndex((message) => objectOf(message)['role'] === 'user');
const thought = ({ reasoning_content: thinking }: JsonObject): string =>
  thinking ? `<think>${thinking}</think>` : '';

const TEMPLATES: Record<string, Template> = {
  plain: { turn: (message) => said(message) + callsIn(message).join('') },
  'thinking kept': { turn: (message) => thought(message) + said(message) + callsIn(message).join('') },
  'thinking stripped before the last user message': {
    turn: (message, i, all) =>
      (i > lastUser(all) ? thought(message) : '') + said(message) + callsIn(message).join(''),
  },
  'tools before the last user message': {
    before: (_, i, all) => (i === lastUser(all) && all.tools.length > 0 ? '[TOOLS]' : ''),
    turn: (message) => said(message) + callsIn(message).join(''),
  },
  'ids of calls written': {
    turn: (message) => said(message) + callsIn(message).join('') + idsIn(message).join(''),
    tool: (message) => `#${message['tool_call_id']}=${said(message)}`,
  },
};

function textOf({ before, turn, tool }: Template, all: Rendering): string {
  const parts = all.messages.map(objectOf).map((message, i) => {
    const { role } = message;
    const inside =
      role === 'assistant' ? turn(message, i, all) : role === 'tool' && tool ? tool(message) : said(message);
    return `${before?.(message, i, all) ?? ''}${START}${role}\n${inside}${END}\n`;
  });
  return `${parts.join('')}${START}assistant\n`;
}

const idsOf = (text: string): Int32Array => Int32Array.from(text, (char) => char.codePointAt(0) as number);
const renderOf =
  (template: Template): Render =>
  async (all) =>
    idsOf(textOf(template, all));

/** A conversation that ends with a sampled turn, and what comes after it. */
function conversation(random: () => number): { readonly head: JsonObject[]; readonly fresh: JsonObject[] } {
  const pick = (n: number): number => Math.floor(random() * n);
  const words = (): string =>
    Array.from({ length: 1 + pick(6) }, () => ['one', 'xy', 'ß', '你', 'x', 'y'][pick(6)]).join(' ');
  let made = 0;
  const turn = (calls: number): JsonObject => ({
    role: 'assistant',
    content: pick(calls > 0 ? 2 : 8) === 0 ? '' : words(),
    ...(pick(2) === 0 && { reasoning_content: words() }),
    ...(calls > 0 && {
      tool_calls: Array.from({ length: calls }, () => ({
        id: `id${made++}`,
        type: 'function',
        function: { name: 'run', arguments: JSON.stringify({ of: words() }) },
      })),
    }),
  });
  const answers = (message: JsonObject): JsonObject[] => {
    const results = arrayOf(message['tool_calls']).map((call) => ({
      role: 'tool',
      tool_call_id: objectOf(call)['id'] ?? null,
      content: words(),
    }));
    return results.length > 0 ? results : [{ role: 'user', content: words() }];
  };
  const head: JsonObject[] = pick(2) === 0 ? [] : [{ role: 'system', content: words() }];
  head.push({ role: 'user', content: words() });
  for (let steps = pick(5); steps > 0; steps--) {
    const next = turn(pick(3));
    head.push(next, ...answers(next));
  }
  const last = turn(pick(3));
  head.push(last);
  const fresh = answers(last);
  if (pick(4) === 0) fresh.push({ role: 'user', content: words() });
  return { head, fresh };
}

const SAMPLED_ENDS = { sampled: true, length: false } as const;

function goesOnFrom(template: Template, all: Rendering, head: readonly JsonObject[], ended: boolean): GoesOn {
  const before = { ...all, messages: head.slice(0, -1) };
  const prompt = idsOf(textOf(template, before));
  const last = head.at(-1) as JsonObject;
  // What was thought was sampled, whether the template writes it or not.
  const { reasoning_content: _, ...bare } = last;
  const turn = thought(last) + template.turn(bare, head.length - 1, { ...all, messages: head });
  const ids = idsOf(textOf(template, before) + turn + (ended ? END : ''));
  return {
    index: 0,
    count: head.length,
    ids: { length: ids.length, from: (place) => ids.subarray(place), extend: () => false },
    lastId: ids.at(-1),
    ended,
    expertRows: 0,
    sampledAt: (place) => place >= prompt.length,
    root: { messages: head.length - 1, ids: () => prompt },
  };
}

const { signal } = new AbortController();

describe('bridges', () => {
  for (const [name, template] of Object.entries(TEMPLATES)) {
    for (const [how, ended] of Object.entries(SAMPLED_ENDS)) {
      it(`lead to what the template writes, or give a reason: ${name}, turn ended by: ${how}`, async () => {
        const random = seeded(7);
        const found = new Set<string>();
        const bridges = new Bridges(renderOf(template));
        for (let round = 0; round < 150; round++) {
          const { head, fresh } = conversation(random);
          const tools = random() < 0.5 ? SKETCH_TOOLS : [];
          const all = { messages: [...head, ...fresh], tools, settings: {} };
          const goesOn = goesOnFrom(template, all, head, ended);
          const tail = await bridges.continuation(goesOn, all, new AbortController().signal);
          const whole = textOf(template, all);
          const extending = whole.startsWith(String.fromCodePoint(...goesOn.ids.from(0)));
          if (typeof tail === 'string') {
            found.add(tail);
            expect(extending, `${tail} without need: ${JSON.stringify(all.messages)}`).to.equal(false);
          } else {
            found.add('bridged');
            expect(String.fromCodePoint(...goesOn.ids.from(0), ...tail)).to.equal(whole);
          }
        }
        expect(found).to.include('bridged');
        expect(found.has('reasoning_dropped')).to.equal(name !== 'thinking kept');
        if (name.startsWith('tools before')) expect(found).to.include('template_not_extending');
      });
    }
  }

  const one = (): { readonly all: Rendering; readonly goesOn: GoesOn } => {
    const head = [
      { role: 'user', content: 'count' },
      { role: 'assistant', content: 'one' },
    ];
    const all = { messages: [...head, { role: 'user', content: 'on' }], tools: [], settings: {} };
    return { all, goesOn: goesOnFrom(TEMPLATES['plain']!, all, head, true) };
  };

  it('are not built with a renderer that renders otherwise than the engine', async () => {
    const { all, goesOn } = one();
    const bridges = new Bridges(async (rendering) => idsOf(`${textOf(TEMPLATES['plain']!, rendering)} `));
    expect(await bridges.continuation(goesOn, all, new AbortController().signal)).to.equal(
      'renderer_differs',
    );
  });

  it('are built on the day after, too, where the template writes the date', async () => {
    let day = 'Monday';
    const render: Render = async (all) => idsOf(day + textOf(TEMPLATES['plain']!, all));
    const bridges = new Bridges(render);
    for (day of ['Monday', 'Tuesday', 'Wednesday']) {
      const { all, goesOn } = one();
      const prompt = await render({ ...all, messages: all.messages.slice(0, 1) }, signal);
      const root = { messages: 1, ids: () => prompt };
      const tail = await bridges.continuation({ ...goesOn, root }, all, signal);
      const whole = textOf(TEMPLATES['plain']!, all);
      expect(tail, day).to.deep.equal(idsOf(whole).subarray(goesOn.ids.length));
    }
  });

  it('render each turn once, and nothing of the history', async () => {
    const sizes: number[] = [];
    const plain = renderOf(TEMPLATES['plain']!);
    const bridges = new Bridges(async (rendering, signal) => {
      const ids = await plain(rendering, signal);
      sizes.push(ids.length);
      return ids;
    });
    const messages: JsonObject[] = [{ role: 'user', content: 'count' }];
    for (let turn = 0; turn < 50; turn++) {
      const head = [...messages, { role: 'assistant', content: `one ${turn}` }];
      const all = { messages: [...head, { role: 'user', content: 'on' }], tools: [], settings: {} };
      await bridges.continuation(
        goesOnFrom(TEMPLATES['plain']!, all, head, true),
        all,
        new AbortController().signal,
      );
      messages.push(...all.messages.slice(messages.length));
    }
    // What is kept is made in the first turns: the proof, the frame, the shapes.
    expect(sizes.length).to.be.below(50 + 20);
    expect(Math.max(...sizes)).to.be.below(100);
  });
});
