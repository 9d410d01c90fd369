import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { SessionSchema } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { attemptTable, failureLines } from './table.ts';

const failure = { reason: 'PREPARE_FAILED', message: 'step 1 ended with 2:\nno such file\n' };
const session = create(SessionSchema, { sessionId: 's-0', failure, attempts: [{ attempt: 1, failure }] });

describe('what is shown of failures', () => {
  it('has the lines of a message below its session, further in', () => {
    expect(failureLines([session, create(SessionSchema, { sessionId: 's-1' })])).to.deep.equal([
      '  s-0: PREPARE_FAILED: step 1 ended with 2:\n      no such file',
    ]);
  });

  it('is one row of a table', () => {
    const lines = attemptTable(session).split('\n');
    expect(lines).to.have.length(2);
    expect(lines[1]).to.contain('PREPARE_FAILED: step 1 ended with 2: ⏎ no such file');
  });
});
