// Scores of a session's conversations: as many questions as it takes, each asked again where the answer is none.
import { randomUUID } from 'node:crypto';
import { sleep } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import type { RubricConfig } from '../../common/specs/strategies.ts';
import { promptOf, type Question } from '../domain/judge-prompt.ts';
import { type Judged, withoutMiddle } from '../domain/judged.ts';
import { scoresIn } from './answer.ts';
import { askJudge, type Judge } from './judge.ts';

/** Conversations of one question. */
const CONVERSATIONS_MAX = 32;
/** Their texts together; each has an equal part, at most max_section_chars. */
const QUESTION_CHARS_MAX = 400_000;
/** Pause before the first repetition; each later one is twice as long. */
const PAUSE_MS = 500;
const PAUSE_MS_MAX = 10_000;
/** Of a pause that the judge asks for: it asks all sessions, and not all of them are to come at once. */
const SPREAD = 0.25;

export interface Session {
  readonly instruction: string;
  readonly outcome: number;
  readonly conversations: readonly Judged[];
  /** What is left of the evaluate budget. */
  readonly remainingMs: () => number;
}

export interface Scored extends Pick<Judged, 'callIds'> {
  readonly score: number;
}

/** The scores of the conversations. Throws JUDGE_UNAVAILABLE, JUDGE_REFUSED, JUDGE_ANSWER_INVALID. */
export async function scoresOf(
  judge: Judge,
  config: RubricConfig,
  { instruction, outcome, conversations, remainingMs }: Session,
  signal: AbortSignal,
): Promise<Scored[]> {
  const scored: Scored[] = [];
  const named = conversations.map((one, i) => ({ ...one, name: `conversation_${i + 1}` }));
  for (let first = 0; first < named.length; first += CONVERSATIONS_MAX) {
    const some = named.slice(first, first + CONVERSATIONS_MAX);
    const charsMax = Math.min(config.max_section_chars, Math.floor(QUESTION_CHARS_MAX / some.length));
    const question = {
      instruction: withoutMiddle([instruction], String, config.max_section_chars),
      rubric: config.rubric,
      outcome,
      conversations: new Map(some.map(({ name, text }) => [name, text(charsMax)])),
    };
    const found = await answered(judge, config, question, remainingMs, signal);
    scored.push(...some.map(({ name, callIds }) => ({ callIds, score: found.get(name) ?? 0 })));
  }
  return scored;
}

/** Where the judge asks to wait, it is asked again as long as the budget lasts; else judge_max_retries times. */
async function answered(
  judge: Judge,
  config: RubricConfig,
  question: Question,
  remainingMs: () => number,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const names = [...question.conversations.keys()];
  for (let [retries, waits] = [0, 0]; ; ) {
    const found = await tryOnce(judge, config, question, names, signal);
    if (!(found instanceof PolarError)) return found;
    const { retryAfterMs } = found;
    if (retryAfterMs === undefined && retries >= config.judge_max_retries) throw found;
    const ownMs = PAUSE_MS * 2 ** (retryAfterMs === undefined ? retries++ : waits++);
    const spread = retryAfterMs === undefined ? 0 : SPREAD * Math.random();
    const pauseMs = Math.max(Math.min(ownMs, PAUSE_MS_MAX), retryAfterMs ?? 0) * (1 + spread);
    if (pauseMs > remainingMs()) throw found;
    await sleep(pauseMs, signal);
    signal.throwIfAborted();
  }
}

async function tryOnce(
  judge: Judge,
  config: RubricConfig,
  question: Question,
  names: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number> | PolarError> {
  const messages = promptOf(question, randomUUID());
  const ask = { messages, temperature: config.judge_temperature, timeoutMs: config.judge_timeout * 1000 };
  try {
    const answer = await askJudge(judge, ask, signal);
    const wanted = `{"scores": {"${names[0]}": -5 to 5${names.length > 1 ? ', …' : ''}}}`;
    return (
      scoresIn(answer, names) ??
      new PolarError(
        'JUDGE_ANSWER_INVALID',
        `judge ${judge.name} answered with something else than ${wanted}`,
      )
    );
  } catch (error) {
    signal.throwIfAborted();
    const failed = asPolarError(error);
    // It would say the same again.
    if (failed.reason === 'JUDGE_REFUSED') throw failed;
    return failed;
  }
}
