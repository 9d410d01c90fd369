import { expect } from 'chai';
import { failureOfStatus, messageIn, statusMeant } from './failures.ts';

describe('engine failures', () => {
  it('are told apart by what a repetition can do', () => {
    // 520 and 529 are of what stands before APIs; 20015 is a number of an API's own, in the body of an error.
    const statuses = {
      ENGINE_REFUSED: [400, 413, 422],
      ENGINE_UNAVAILABLE: [408, 429, 500, 503, 504, 520, 524, 529],
      ENGINE_ERROR: [401, 404, 501, 505, 20_015],
    };
    for (const [reason, those] of Object.entries(statuses)) {
      for (const status of those)
        expect(failureOfStatus('e', status, 'm'), `${status}`).to.include({ reason });
    }
  });

  it('are the request’s own where a template refuses it, whatever llama-server says', () => {
    const said =
      'While executing CallExpression at line 85:\n^\nError: Jinja Exception: No user query found.';
    expect(statusMeant(500, said)).to.equal(400);
    expect(statusMeant(500, 'failed to decode')).to.equal(500);
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
