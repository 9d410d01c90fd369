import { expect } from 'chai';
import { commonSuffix, type Frame, shapeOf, startsWith, tailOf } from './bridge.ts';

const ids = (...given: number[]): Int32Array => Int32Array.from(given);

describe('bridge', () => {
  // 1 begins a turn, 2 ends it, 9 follows it; 5 is the user, 6 the assistant.
  const frame: Frame = { turnEnd: 2, trailer: ids(2, 9, 1, 6) };
  const before = ids(1, 5, 40, 2, 9, 1, 6);
  const fresh = [2, 9, 1, 5, 50, 2, 9, 1, 6];

  it('knows what is common to two', () => {
    expect([...commonSuffix(ids(1, 2, 3), ids(9, 2, 3))]).to.deep.equal([2, 3]);
    expect([...commonSuffix(ids(1), ids(2))]).to.deep.equal([]);
    expect([startsWith(ids(1, 2), ids(1)), startsWith(ids(1), ids(1, 2))]).to.deep.equal([true, false]);
  });

  it('ends a shape where the sampled turn ends, also behind what is the same in all', () => {
    const shape = shapeOf(
      {
        before,
        one: ids(1, 5, 40, 2, 9, 1, 6, 30, 77, ...fresh),
        other: ids(1, 5, 40, 2, 9, 1, 6, 31, 77, ...fresh),
        otherThinking: undefined,
      },
      frame,
    );
    expect(shape).to.deep.equal({ start: ids(1, 5, 40, 2, 9, 1, 6, 30, 77) });
  });

  it('tells what a template does not give back', () => {
    const one = ids(1, 5, 40, 2, 9, 1, 6, 30, ...fresh);
    const other = ids(1, 5, 40, 2, 9, 1, 6, 31, ...fresh);
    const of = (more: object) => shapeOf({ before, one, other, otherThinking: undefined, ...more }, frame);
    expect(of({ before: ids(1, 5, 41, 2, 9, 1, 6) })).to.deep.equal({ fault: 'history' });
    expect(of({ otherThinking: one })).to.deep.equal({ fault: 'thinking' });
    expect(of({ other: one })).to.deep.equal({ fault: 'turn' });
    expect(of({ one: ids(1, 5, 40, 30), other: ids(1, 5, 40, 31) })).to.deep.equal({ fault: 'turn' });
  });

  it('goes on behind what was sampled: with the end of the turn only where it was not', () => {
    const start = ids(1, 5, 40, 2, 9, 1, 6, 30);
    const rendered = ids(...start, ...fresh);
    const tail = (lastId: number | undefined, ended: boolean) =>
      tailOf(rendered, start, frame, { lastId, ended });
    expect(tail(2, true)).to.deep.equal(Int32Array.from(fresh.slice(1)));
    // A stop string, or the limit, right behind the end of the turn.
    expect(tail(2, false)).to.deep.equal(Int32Array.from(fresh.slice(1)));
    expect(tail(30, false)).to.deep.equal(Int32Array.from(fresh));
    // Another end of a turn than the template's is the end of the turn.
    expect(tail(3, true)).to.deep.equal(Int32Array.from(fresh.slice(1)));
    expect(tail(undefined, false)).to.deep.equal(Int32Array.from(fresh));
  });

  it('does not go on from a rendering that begins otherwise than its shape', () => {
    const start = ids(1, 5, 40);
    expect(tailOf(ids(1, 5, 41, 2), start, frame, { lastId: 2, ended: true })).to.equal(undefined);
    expect(tailOf(ids(1, 5, 40, 7), start, frame, { lastId: 2, ended: true })).to.equal(undefined);
    expect(tailOf(start, start, frame, { lastId: 2, ended: true })).to.equal(undefined);
  });
});
