import { expect } from 'chai';
import { PolarError } from '../../../common/errors.ts';
import { type JsonObject, objectOf } from '../../domain/json.ts';
import { openaiResponses } from './dialect.ts';

const target = { kind: 'generate', dialect: 'openai-responses' } as const;
const stream = (more: JsonObject = {}) =>
  openaiResponses
    .read({ input: 'x', stream: true, ...more }, target)
    .writer('shown')
    .stream();
const calledAs = (id: string): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
});

const chunk = (delta: JsonObject, finish: string | null = null): JsonObject => ({
  id: 'chatcmpl-7',
  created: 5,
  choices: [{ index: 0, delta, finish_reason: finish }],
});

interface Told {
  type: string;
  sequence_number: number;
  [key: string]: unknown;
}

/** The events of a framed text; each is framed with its own type. */
const eventsIn = (text: string): Told[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .map((frame) => {
      const [, type, data] = /^event: (.+)\ndata: (.+)$/.exec(frame) as unknown as [string, string, string];
      const event = JSON.parse(data) as Told;
      expect(event.type).to.equal(type);
      return event;
    });

describe('openai-responses stream', () => {
  it('tells each delta as it comes, ends what is said before the next item begins, and calls with the reply', () => {
    const writer = stream({ reasoning: { summary: 'auto' }, include: ['reasoning.encrypted_content'] });
    const parts = [
      writer.chunk(chunk({ role: 'assistant', content: '' })),
      writer.chunk(chunk({ reasoning_content: 'why' })),
      writer.chunk(chunk({ content: 'so' })),
      writer.chunk(chunk({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '' } }] })),
      writer.chunk(chunk({ tool_calls: [{ index: 0, function: { arguments: '{ "a"' } }] })),
      writer.chunk(chunk({}, 'tool_calls')),
      writer.chunk({ id: 'chatcmpl-7', choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } }),
      writer.end(),
    ];
    const told = parts.map(eventsIn);
    const types = told.map((events) => events.map(({ type }) => type.replace(/^response\./, '')));
    expect(types).to.deep.equal([
      ['created', 'in_progress'],
      ['output_item.added', 'reasoning_summary_part.added', 'reasoning_summary_text.delta'],
      [
        ...['reasoning_summary_text.done', 'reasoning_summary_part.done', 'output_item.done'],
        ...['output_item.added', 'content_part.added', 'output_text.delta'],
      ],
      ['output_text.done', 'content_part.done', 'output_item.done', 'output_item.added'],
      ['function_call_arguments.delta'],
      ['function_call_arguments.done', 'output_item.done'],
      [],
      ['completed'],
    ]);
    const events = told.flat();
    expect(events.map((event) => event.sequence_number)).to.deep.equal(events.map((_, i) => i));
    const { response } = events.at(-1) as unknown as {
      response: { output: JsonObject[]; usage: JsonObject };
    };
    expect(response).to.include({ id: 'resp_7', created_at: 5, status: 'completed', model: 'shown' });
    expect(response.usage).to.include({ input_tokens: 3, output_tokens: 2, total_tokens: 5 });
    expect(response.output.map(({ type, status }) => [type, status])).to.deep.equal([
      ['reasoning', 'completed'],
      ['message', 'completed'],
      ['function_call', 'completed'],
    ]);
    expect(response.output[2]).to.include({ arguments: '{ "a"' });
  });

  it('is one message again, whatever the engine says in between', () => {
    const named = (index: number): JsonObject => ({
      tool_calls: [{ index, id: `c${index}`, function: { name: 'f', arguments: '{}' } }],
    });
    const said = { role: 'assistant', content: 'so\n it is', tool_calls: ['c0', 'c1'].map(calledAs) };
    const thought = { reasoning_content: 'why not' };
    const outputs = ['c0', 'c1'].map((id) => ({ type: 'function_call_output', call_id: id, output: 'o' }));
    const deltas = [{ content: 'so' }, named(0), { content: '\n it' }, { content: ' is' }, named(1)];
    const itemsOf = (all: readonly JsonObject[]): JsonObject[] => {
      const writer = stream({ store: false });
      const text = all.map((delta) => writer.chunk(chunk(delta))).join('') + writer.end();
      const done = eventsIn(text).filter(({ type }) => type === 'response.output_item.done');
      const last = eventsIn(text).at(-1) as unknown as { response: { output: JsonObject[] } };
      const ended = done.toSorted((a, b) => Number(a['output_index']) - Number(b['output_index']));
      expect(ended.map(({ item }) => item)).to.deep.equal(last.response.output);
      return last.response.output;
    };
    const messageOf = (items: readonly JsonObject[]): unknown =>
      openaiResponses.read({ input: [...items, ...outputs] }, target).messages[0];
    const plain = itemsOf(deltas);
    expect(plain.map(({ id }) => id)).to.deep.equal(['msg_7_0', 'fc_7_0', 'msg_7_1', 'fc_7_1']);
    expect(messageOf(plain)).to.deep.equal(said);
    expect(messageOf(plain.map(({ id: _, ...item }) => item))).to.deep.equal(said);
    const thinking = itemsOf([
      { reasoning_content: 'why' },
      deltas[0] as JsonObject,
      { reasoning_content: ' not' },
      ...deltas.slice(1),
    ]);
    expect(messageOf(thinking)).to.deep.equal({ ...said, ...thought });
  });

  it('has its reasoning sealed where the harness counts on its being stored, or asks for it', () => {
    const include = ['reasoning.encrypted_content'];
    const sealedWith = (more: JsonObject): boolean => {
      const writer = stream(more);
      writer.chunk(chunk({ reasoning_content: 'why' }));
      const events = eventsIn(writer.chunk(chunk({}, 'stop')));
      const done = events.find(({ type }) => type === 'response.output_item.done');
      return objectOf(done?.['item'])['encrypted_content'] !== undefined;
    };
    const asked: JsonObject[] = [{}, { store: null }, { store: true }, { store: false, include }];
    for (const more of asked) expect(sealedWith(more), JSON.stringify(more)).to.equal(true);
    expect(sealedWith({ store: false })).to.equal(false);
  });

  it('is incomplete where it was cut short, in its last item', () => {
    const writer = stream();
    const events = eventsIn(
      writer.chunk(chunk({ reasoning_content: 'why' })) +
        writer.chunk(chunk({ content: 'so' }, 'length')) +
        writer.end(),
    );
    const last = events.at(-1) as unknown as { type: string; response: JsonObject };
    expect(last.type).to.equal('response.incomplete');
    expect(last.response).to.deep.include({ incomplete_details: { reason: 'max_output_tokens' } });
    const done = events.filter(({ type }) => type === 'response.output_item.done') as unknown as {
      item: JsonObject;
    }[];
    expect(done.map(({ item }) => item['status'])).to.deep.equal(['completed', 'incomplete']);
    expect(events.some(({ type }) => type === 'response.reasoning_text.delta')).to.equal(true);
  });

  it('that breaks ends with an error and response.failed, also before its first chunk', () => {
    const writer = stream();
    const error = new PolarError('ENGINE_STREAM_CUT', 'broke off');
    const events = eventsIn(writer.failed(error) ?? '');
    expect(events.map(({ type }) => type)).to.deep.equal([
      'response.created',
      'response.in_progress',
      'error',
      'response.failed',
    ]);
    expect(events[2]).to.have.nested.property('error.code', 'server_error');
    expect(events[3]).to.have.nested.property('response.error.code', 'server_error');
    const overflow = new PolarError('ENGINE_REFUSED', 'over the context window');
    const [, , wrong, tooLong] = eventsIn(stream().failed(overflow) ?? '');
    expect(wrong).to.have.nested.property('error.type', 'invalid_request_error');
    expect(tooLong).to.have.nested.property('response.error.code', 'context_length_exceeded');
    expect(openaiResponses.errorBody(overflow, 400)).to.have.nested.property('error.param', 'input');
    const later = stream();
    later.chunk(chunk({ content: 'half' }));
    const [, failed] = eventsIn(later.failed(error) ?? '');
    expect(failed).to.deep.include({ type: 'response.failed', sequence_number: 6 });
    expect(failed).to.have.nested.property('response.output[0].content[0].text', 'half');
  });
});
