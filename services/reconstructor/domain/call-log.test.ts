import { expect } from 'chai';
import { build } from './build.ts';
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
  routed_experts: { first: 1, layers: 1, top_k: 2, item_bytes: 1, rows: 'AAECAw==' },
  routed_experts_fault: '',
};

describe('a log of calls', () => {
  it('has the reward of a call from whichever of its lines tells one, and only one reward', () => {
    const graded = { ...call, reward: 0.5 };
    for (const lines of [
      [call, graded],
      [graded, call],
    ]) {
      const log = new CallLog();
      expect(lines.map((line) => log.add(line)?.kind)).to.deep.equal([undefined, 'repeated']);
      expect(log.rewards.map(({ callId, reward }) => [callId, reward])).to.deep.equal([['c1', 0.5]]);
      expect(log.add({ ...call, reward: 1 })?.kind).to.equal('duplicate');
    }
  });

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
      routed_experts: { first: 1, layers: 1, top_k: 2, item_bytes: 1, rows: 'AAECBA==' },
      routed_experts_fault: 'absent',
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
    const otherRuns = call.policy_runs.map((run, i) => ({ ...run, policy_version: 3 + i }));
    expect(log.add({ ...call, policy_runs: otherRuns })?.kind).to.equal('duplicate');
    expect(log.calls[0]).to.deep.include({
      invalidToolCall: true,
      logprobs: Float32Array.of(-0.5, Number.NaN),
    });
    expect(log.calls).to.have.length(1);
  });

  it('refuses what is no call, by the name of its field', () => {
    const wrong: Record<string, unknown[]> = {
      call_id: ['', 7, undefined],
      start_seq: [-1, 0.5, '1', undefined],
      end_seq: [-1, 2 ** 53],
      prompt_ids: [null, 'ids', [-1], [0.5], [2 ** 31], [1, '2']],
      sampled_ids: [undefined, [1, null]],
      logprobs: [undefined, '-1', [-1, 'x'], ['x', -1]],
      finish_reason: [undefined, 'end'],
      role: ['none', null],
      trainable: [1, null],
      model: [7],
      policy_version: [-1, 1.5, '3'],
      messages: ['a', ['a', 7], [7, 'a']],
      reply: [7],
      reward: ['1', Number.NaN],
      routed_experts_fault: [7],
      policy_runs: [
        {},
        [null],
        [{ policy_version: 2, start: 0, length: 1 }],
        [{ policy_version: 2, start: 1, length: 2 }],
        [{ policy_version: -2, start: 0, length: 2 }],
        [
          { policy_version: 2, start: 0, length: 3 },
          { policy_version: 3, start: 3, length: -1 },
        ],
      ],
    };
    for (const [key, values] of Object.entries(wrong)) {
      for (const value of values) {
        const fault = new CallLog().add({ ...call, [key]: value });
        expect(fault?.kind, `${key} ${JSON.stringify(value)}`).to.equal('invalid');
        expect(fault?.why.startsWith(`${key} must be `), fault?.why).to.equal(true);
      }
    }
    const least = { ...call, prompt_ids: [0, 2 ** 31 - 1], start_seq: 0, policy_version: 0 };
    expect(new CallLog().add(least)).to.equal(undefined);
  });

  it('fills what a line leaves out', () => {
    const { call_id, start_seq, end_seq, prompt_ids, sampled_ids, finish_reason } = call;
    const log = new CallLog();
    const line = { call_id, start_seq, end_seq, prompt_ids, sampled_ids, finish_reason, logprobs: null };
    expect(log.add(line)).to.equal(undefined);
    expect(log.calls[0]).to.deep.include({
      ...{ trainable: true, role: 'main', model: '', policyVersion: 0n, policyRuns: [], reply: null },
      ...{ invalidToolCall: false, logprobs: undefined, experts: undefined, expertsFault: '' },
    });
    expect(log.add(call)?.kind).to.equal('duplicate');
  });

  it('keeps a call whose routed experts do not fit its ids, without them', () => {
    const told = call.routed_experts;
    for (const [changes, fault] of [
      [{ ...told }, ''],
      [{ ...told, first: 0 }, 'wrong_length'],
      [{ ...told, rows: 'AAEC' }, 'wrong_length'],
      [{ ...told, first: 4, rows: '' }, 'wrong_length'],
      [{ ...told, item_bytes: 2, layers: 1, top_k: 1 }, ''],
    ] as const) {
      const log = new CallLog();
      expect(log.add({ ...call, routed_experts: changes })).to.equal(undefined);
      expect(log.calls[0]).to.include({ expertsFault: fault });
      expect(log.calls[0]?.experts === undefined).to.equal(fault !== '');
    }
    for (const changes of [null, 7, { ...told, first: -1 }, { ...told, item_bytes: 4 }, { behind: 'c0' }]) {
      expect(new CallLog().add({ ...call, routed_experts: changes })?.kind).to.equal('invalid');
    }
  });

  it('knows no rows of calls that are not there, and does not go round where calls name each other', () => {
    const log = new CallLog();
    const behind = (name: string): object => ({ behind: name, shared: 9 });
    const names = { c1: 'c2', c2: 'c3', c3: 'c1', c4: 'nobody', c5: 'c5' };
    for (const [call_id, name] of Object.entries(names)) {
      expect(log.add({ ...call, call_id, routed_experts: behind(name) })).to.equal(undefined);
    }
    const { traces } = build('per_request', log.calls);
    expect(traces).to.have.length(5);
    for (const { routedExperts } of traces) expect(routedExperts).to.equal(undefined);
  });
});
