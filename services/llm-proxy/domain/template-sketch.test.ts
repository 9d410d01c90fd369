import { expect } from 'chai';
import type { JsonObject } from './json.ts';
import { hasMedia, sketchOf } from './template-sketch.ts';

const call = (id: string): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'run', arguments: '{"a":"long"}' },
});
const turn = (id: string, more: JsonObject = {}): JsonObject => ({
  role: 'assistant',
  content: 'a long text',
  tool_calls: [call(id)],
  ...more,
});
const result = (id: string): JsonObject => ({ role: 'tool', tool_call_id: id, content: 'a long result' });
const user = (content: string): JsonObject => ({ role: 'user', content });

describe('the sketch of a conversation', () => {
  it('has each kind of turn once, however often it came, and nothing of what was said', () => {
    const before = [{ role: 'system', content: 'a long instruction' }, user('a long task')];
    for (let i = 0; i < 50; i++) before.push(turn(`c${i}`), result(`c${i}`));
    for (let i = 50; i < 60; i++)
      before.push(turn(`c${i}`, { reasoning_content: 'a long thought' }), result(`c${i}`));
    const sketch = sketchOf({ before, turn: turn('last') }, [result('last')], false);
    expect(sketch.before.map(({ role }) => role)).to.deep.equal([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
    ]);
    expect(JSON.stringify([sketch.before, sketch.fresh, sketch.turn('x')])).not.to.include('long');
  });

  it('keeps the last user message in its place: templates look for it', () => {
    const before = [
      user('one'),
      { role: 'assistant', content: 'a' },
      user('two'),
      turn('c', { reasoning: 'b' }),
      result('c'),
    ];
    before.push({ role: 'assistant', content: 'a' }, user('three'));
    const roles = sketchOf({ before, turn: turn('d') }, [], false).before.map(({ role }) => role);
    expect(roles.lastIndexOf('user')).to.be.above(roles.lastIndexOf('tool'));
  });

  it('says two things in the sampled turn, in its thinking too', () => {
    const { turn: said, hasThinking } = sketchOf(
      { before: [], turn: turn('c', { reasoning_content: 't' }) },
      [],
      false,
    );
    expect(hasThinking).to.equal(true);
    expect(said('x', 'y')).to.deep.include({ content: 'x', reasoning_content: 'y' });
    const tagged = { role: 'assistant', content: '<think>hm</think>a' };
    expect(sketchOf({ before: [], turn: tagged }, [], false).turn('x', 'y')['content']).to.equal(
      '<think>\ny\n</think>\n\nx',
    );
  });

  it('has the ids of calls as they are where new messages name them, else always the same', () => {
    const kept = sketchOf({ before: [], turn: turn('c7') }, [result('c7')], true);
    expect(kept.fresh[0]?.['tool_call_id']).to.equal('c7');
    const made = sketchOf({ before: [], turn: turn('c7') }, [result('c7')], false);
    expect(JSON.stringify([made.turn('x'), made.fresh])).not.to.include('c7');
    expect(JSON.stringify(made.realTurn)).to.include('c7');
  });

  it('knows what is no text', () => {
    expect(hasMedia({ role: 'user', content: [{ type: 'text', text: 'a' }] })).to.equal(false);
    expect(hasMedia({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] })).to.equal(
      true,
    );
  });
});
