import { expect } from 'chai';
import { failureOfStatus, messageIn } from './failures.ts';

describe('engine failures', () => {
  it('are told apart by what a repetition can do', () => {
    const reasons = [400, 413, 422, 429, 500, 503, 401, 404].map(
      (status) => failureOfStatus('e', status, 'm').reason,
    );
    expect(reasons).to.deep.equal([
      ...Array(3).fill('ENGINE_REFUSED'),
      ...Array(3).fill('ENGINE_UNAVAILABLE'),
      ...Array(2).fill('ENGINE_ERROR'),
    ]);
  });

  it('have the message of whichever form the body has', () => {
    const bodies = [
      '{"error":{"message":"a"}}',
      '{"object":"error","message":"b"}',
      '{"detail":"c"}',
      ' d \n',
    ];
    expect(bodies.map(messageIn)).to.deep.equal(['a', 'b', 'c', 'd']);
    expect(messageIn('x'.repeat(10_000))).to.have.length(500);
  });
});
