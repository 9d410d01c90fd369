import { expect } from 'chai';
import { DueAnswer } from './due-answer.ts';

const WHOLE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}';
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
const EVENT = '9\r\ndata: 1\n\n\r\n';
const GREETING = 10;

/** What is said after each step: a number is bytes sent, a text came. */
function due(...steps: readonly (number | string)[]): boolean[] {
  const answer = new DueAnswer(GREETING);
  let sent = GREETING;
  return steps.map((step) => {
    if (typeof step === 'number') sent += step;
    else answer.came(Buffer.from(step), sent);
    return answer.isDue(sent);
  });
}

describe('an answer on a connection to the LLM proxy', () => {
  it('is due from its request until it came', () => {
    expect(due(0, 100, 50, WHOLE, 100, WHOLE)).to.deep.equal([false, true, true, false, true, false]);
  });

  it('is due until its last chunk, however that is cut', () => {
    expect(due(100, HEAD, EVENT, `${EVENT}0\r\n\r\n`)).to.deep.equal([true, true, true, false]);
    expect(due(100, HEAD + EVENT, '0', '\r\n\r', '\n')).to.deep.equal([true, true, true, true, false]);
    expect(due(100, `${HEAD}${EVENT}0\r\n\r\n`, 100, HEAD)).to.deep.equal([true, false, true, true]);
  });

  it('is due again behind a mere word to go on', () => {
    expect(due(100, 'HTTP/1.1 100 Continue\r\n\r\n', 100, WHOLE)).to.deep.equal([true, false, true, false]);
  });
});
