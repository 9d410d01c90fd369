import { expect } from 'chai';
import { KnownMessages, knownMessage } from './known-messages.ts';

const said = (content: string) => knownMessage(JSON.stringify({ role: 'user', content }));

describe('known messages', () => {
  it('are the very same each time, of each attempt its own', () => {
    const known = new KnownMessages();
    const [one, other] = [{}, {}];
    const message = said('x');
    known.keep(one, [['d', message]]);
    known.keep(one, [['d', said('x')]]);
    expect(known.get(one, 'd')).to.equal(message);
    expect(known.get(other, 'd')).to.equal(undefined);
    expect([known.has(one), known.has(other)]).to.deep.equal([true, false]);
  });

  it('are bounded: the attempt that was longest unused goes, one that is too large alone does, too', () => {
    const known = new KnownMessages(10_000);
    const attempts = [{}, {}, {}];
    for (const attempt of attempts) known.keep(attempt, [['d', said('x'.repeat(1_000))]]);
    known.keep(attempts[0]!, []);
    known.keep(attempts[1]!, [['e', said('y'.repeat(1_000))]]);
    expect(attempts.map((attempt) => known.has(attempt))).to.deep.equal([true, true, false]);
    known.keep(attempts[0]!, [['f', said('z'.repeat(10_000))]]);
    expect(attempts.map((attempt) => known.has(attempt))).to.deep.equal([false, false, false]);
    expect(known.sizeBytes).to.equal(0);
  });

  it('are gone with their attempt', () => {
    const known = new KnownMessages();
    const attempt = {};
    known.keep(attempt, [['d', said('x')]]);
    expect(known.sizeBytes).to.be.greaterThan(0);
    known.forget(attempt);
    known.forget(attempt);
    expect([known.sizeBytes, known.has(attempt)]).to.deep.equal([0, false]);
  });
});
