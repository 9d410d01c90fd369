import { expect } from 'chai';
import { recordsOf, sampledCall } from '../../../test/support/records.ts';
import { expand } from './expand.ts';
import { bodiesOf, messagesLine } from './export-records.ts';

describe('the messages of a call', () => {
  it('tell that the reply goes on with the last of them, which the harness had begun', () => {
    const records = recordsOf([sampledCall('c0', [1, 2], [3]), sampledCall('c1', [1, 2, 3], [4])]);
    if (records[0] !== undefined) records[0].sampling = { max_tokens: 5, continue_final_message: true };
    const lines = expand(records).map((call, i) => messagesLine(call, records[i]!, bodiesOf(records)));
    const told = lines.map((line) => (JSON.parse(line) as { goes_on?: boolean }).goes_on);
    expect(told).to.deep.equal([true, undefined]);
  });
});
