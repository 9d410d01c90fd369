// Made-up sessions: trees of calls with retries, siblings, rewinds, drift, sub-agents, holes and broken calls.
import type { RecordedCall } from './records.ts';

interface Turn {
  readonly messages: readonly string[];
  readonly ids: readonly number[];
}

/** A session from a source of numbers. A small vocabulary makes calls extend each other by chance, too. */
export function madeUpSession(random: () => number, calls: number, vocabulary: number): RecordedCall[] {
  const pick = (n: number): number => Math.floor(random() * n);
  const some = (most: number): number[] => Array.from({ length: pick(most + 1) }, () => 1 + pick(vocabulary));
  const made: RecordedCall[] = [];
  const turns: Turn[] = [];
  const running: { endsAt: number; finish: () => void }[] = [];
  let seq = 0;

  const prompt = (): Turn => {
    const from =
      turns.length === 0 ? undefined : turns[random() < 0.6 ? turns.length - 1 : pick(turns.length)];
    if (from === undefined || random() < 0.1) return { messages: ['s', `u${pick(3)}`], ids: [1, ...some(4)] };
    if (random() < 0.15) return drifted(from, pick, vocabulary);
    if (random() < 0.15) return from;
    return { messages: [...from.messages, `m${pick(4)}`], ids: [...from.ids, ...some(3)] };
  };

  const begin = (i: number): void => {
    const turn = prompt();
    const startSeq = seq++;
    const sampled = random() < 0.1 ? [] : some(4);
    const finish = (): void => {
      const call: RecordedCall = {
        call_id: `c${i}`,
        start_seq: startSeq,
        end_seq: seq++,
        prompt_ids: turn.ids,
        sampled_ids: sampled,
        ...outcome(random, sampled),
        model: 'policy',
        policy_version: pick(3),
        messages: turn.messages,
        reply: random() < 0.1 ? null : `r${sampled.join('.')}`,
      };
      made.push(call);
      turns.push(turn, {
        messages: [...turn.messages, call.reply ?? 'lost'],
        ids: [...turn.ids, ...sampled],
      });
    };
    running.push({ endsAt: i + pick(3), finish });
  };

  for (let i = 0; i < calls; i++) {
    begin(i);
    for (const call of running.filter(({ endsAt }) => endsAt <= i)) {
      running.splice(running.indexOf(call), 1);
      call.finish();
    }
  }
  for (const call of running) call.finish();
  return made;
}

function drifted(from: Turn, pick: (n: number) => number, vocabulary: number): Turn {
  const at = pick(from.ids.length);
  const ids = from.ids.toSpliced(at, pick(3), 1 + pick(vocabulary));
  const messages = pick(2) === 0 ? from.messages : from.messages.with(pick(from.messages.length), `x${at}`);
  return { messages: [...messages, 'again'], ids };
}

type Outcome = Pick<RecordedCall, 'finish_reason' | 'logprobs' | 'trainable' | 'role'>;

function outcome(random: () => number, sampled: readonly number[]): Outcome {
  const logprob = (): number | null => {
    if (random() > 0.03) return -random();
    return [null, -9999, 0.5][Math.floor(random() * 3)] ?? null;
  };
  const reasons = ['cancelled', 'abort', 'error', 'length', 'tool_calls'];
  const given = sampled.map(logprob).map((value) => (value === null ? null : Math.fround(value)));
  const cut = random() < 0.05 ? given.slice(1) : given;
  return {
    finish_reason: (random() < 0.3 ? reasons[Math.floor(random() * reasons.length)] : undefined) ?? 'stop',
    logprobs: random() < 0.05 ? null : cut,
    ...(random() < 0.05 && { trainable: false }),
    ...(random() < 0.1 && { role: random() < 0.5 ? 'side' : 'sub' }),
  };
}
