// An engine that fails once, at each point of a reply, and does well the next time it is asked.
import { type Case, type CaseName, DONE, done, type Step, write } from './case.ts';

/** More than the proxy lets pass without a keep-alive. */
const STALL_MS = 20_000;
const IN_TEXT = 6;
/** Behind the name of the tool, in its arguments. */
const IN_CALL = 25;

const text = 'First I say at some length what I am about to do, because nothing is in a hurry here.';
const content = 'one and two and three and four and five and six and seven and eight and nine and ten\n';

interface Fault {
  readonly name: CaseName;
  readonly what: string;
  readonly switches: Step;
  /** Something had been sampled, and that is recorded. */
  readonly began: boolean;
}

const before = (name: CaseName, what: string, switches: Step): Fault => ({
  name,
  what,
  switches,
  began: false,
});
const within = (name: CaseName, what: string, switches: Step): Fault => ({
  name,
  what,
  switches,
  began: true,
});
const stall = (after: number): Step => ({
  stall_ms: STALL_MS,
  stall_after_tokens: after,
  cut_after_tokens: after + 1,
});
const stalled = `${STALL_MS / 1000} s of silence, then the end of the connection,`;

const FAULTS: readonly Fault[] = [
  before('503-before-head', '503', { error_every: 1, error_status: 503 }),
  before('cut-before-head', 'a connection that ends before the head of the answer', {
    cut_before_head: true,
  }),
  before('stall-before-head', `${stalled} before the head of the answer`, {
    stall_ms: STALL_MS,
    cut_before_head: true,
  }),
  within('error-mid-text', 'an error event in the middle of text', {
    cut_after_tokens: IN_TEXT,
    cut_error: true,
  }),
  within('cut-mid-text', 'a connection that ends in the middle of text', { cut_after_tokens: IN_TEXT }),
  within('stall-mid-text', `${stalled} in the middle of text`, stall(IN_TEXT)),
  within('error-mid-call', 'an error event in the middle of a tool call', {
    cut_after_tokens: IN_CALL,
    cut_error: true,
  }),
  within('cut-mid-call', 'a connection that ends in the middle of a tool call', {
    cut_after_tokens: IN_CALL,
  }),
  within('stall-mid-call', `${stalled} in the middle of a tool call`, stall(IN_CALL)),
];

export const faults: readonly Case[] = FAULTS.map(({ name, what, switches, began }) => ({
  name,
  what: `${what}, once`,
  engine: 'vllm',
  commands: [
    {
      prompt: 'Write one.txt.',
      steps: (cli) => [
        {
          ...(name.endsWith('call') ? {} : { text }),
          calls: [write('one.txt', content)],
          switches: { ...switches, fault_tries: 1 },
        },
        done(cli),
      ],
    },
  ],
  asides: ({ resumption }) =>
    resumption === undefined ? [] : [{ last: resumption, calls: [write('one.txt', content)] }],
  expected: {
    exitCodes: [0],
    files: { 'one.txt': content },
    finishes: [...(began ? ['error'] : []), 'tool_calls', 'done'],
    traces: 1,
    says: DONE,
  },
}));
