import { expect } from 'chai';
import { CallLog } from './call-log.ts';

const call = {
  call_id: 'c1',
  start_seq: 1,
  end_seq: 2,
  prompt_ids: [1, 2],
  sampled_ids: [3, 4],
  logprobs: [-0.5, null],
  finish_reason: 'stop',
  role: 'sub',
  trainable: true,
  model: 'm',
  policy_version: 3,
  policy_runs: [
    { policy_version: 2, start: 0, length: 1 },
    { policy_version: 3, start: 1, length: 1 },
  ],
  messages: ['a', 'b'],
  reply: 'c',
  invalid_tool_call: true,
};

describe('a log of calls', () => {
  it('knows a line that is there twice from another call of the same id, whatever differs', () => {
    const log = new CallLog();
    expect(log.add(call)).to.equal(undefined);
    expect(log.add(structuredClone(call))?.kind).to.equal('repeated');
    const others: Record<string, unknown> = {
      start_seq: 0,
      end_seq: 3,
      prompt_ids: [1],
      sampled_ids: [3, 5],
      logprobs: [-0.5, -0.5],
      finish_reason: 'length',
      role: 'main',
      trainable: false,
      model: 'n',
      policy_version: 4,
      policy_runs: [],
      messages: ['a'],
      reply: null,
      invalid_tool_call: false,
    };
    expect(Object.keys(others), 'every key').to.have.members(
      Object.keys(call).filter((key) => key !== 'call_id'),
    );
    for (const [key, value] of Object.entries(others)) {
      expect(log.add({ ...call, [key]: value })?.kind, key).to.equal('duplicate');
    }
    const runs = [
      { policy_version: 2, start: 0, length: 2 },
      { policy_version: 3, start: 2, length: 0 },
    ];
    expect(log.add({ ...call, policy_runs: runs })?.kind).to.equal('duplicate');
    expect(log.calls).to.have.length(1);
  });
});
