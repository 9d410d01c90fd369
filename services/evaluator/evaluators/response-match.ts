// Replies that hold what a task looks for: each is rewarded by itself, and the session by its last one.
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import {
  PATTERN_FLAGS,
  type ResponseMatchConfig,
  responseMatchConfig,
} from '../../common/specs/reply-evaluators.ts';
import { finalOf, type Reply, repliesOf } from '../domain/replies.ts';
import { matchesOf } from '../matching/match.ts';
import { leftMs } from '../sandboxes/sandbox.ts';
import { recordsOf } from './call-records.ts';
import { checkRewarded, type Evaluation, type Evaluator } from './evaluator.ts';

/** Of all replies together; above: FILE_TOO_LARGE. */
const REPLIES_CHARS_MAX = 16 * 1024 * 1024;

export const responseMatch: Evaluator = {
  name: 'response_match',
  summary: 'Rewards replies that hold texts or match patterns; the session is rewarded by its last one.',
  async evaluate(ctx, evaluation, signal) {
    const config = configOf(evaluation);
    const replies = repliesOf(await recordsOf(ctx, evaluation, signal));
    checkRewarded(replies.length);
    checkSize(replies);
    const texts = replies.map(({ text }) => text);
    const limits = { timeoutMs: leftMs(evaluation.remainingMs), signal };
    const hits = await hitsIn(texts, config, limits);
    const rewardOf = (reply: Reply | undefined): number =>
      reply !== undefined && hits[replies.indexOf(reply)] ? config.reward : config.miss_reward;
    const last = finalOf(replies);
    return {
      reward: rewardOf(last),
      evaluation: {
        resolved: last !== undefined && hits[replies.indexOf(last)] === true,
        replies: replies.length,
        matching_replies: hits.filter((isHit) => isHit).length,
        call_id: last?.callId ?? null,
      },
      traceRewards: replies.map((reply) => ({ callId: reply.callId, reward: rewardOf(reply) })),
    };
  },
};

const configOf = ({ work }: Evaluation): ResponseMatchConfig =>
  checkStrict(responseMatchConfig, work.evaluator?.config ?? {}, 'evaluator.config', 'INVALID_TASK');

function checkSize(replies: readonly Reply[]): void {
  const chars = replies.reduce((sum, { text }) => sum + text.length, 0);
  if (chars <= REPLIES_CHARS_MAX) return;
  const message = `the session's replies have ${chars} characters, above REPLIES_CHARS_MAX (${REPLIES_CHARS_MAX})`;
  throw new PolarError('FILE_TOO_LARGE', message);
}

async function hitsIn(
  texts: readonly string[],
  config: ResponseMatchConfig,
  limits: Parameters<typeof matchesOf>[1],
): Promise<boolean[]> {
  const { contains, patterns, require_all, ignore_case } = config;
  const cased = (text: string): string => composed(ignore_case ? text.toLowerCase() : text);
  const wanted = contains.map(cased);
  const work = { patterns, flags: PATTERN_FLAGS + (ignore_case ? 'i' : ''), texts };
  const matches = patterns.length === 0 ? texts.map(() => []) : await matchesOf(work, limits);
  return texts.map((text, index) => {
    const own = cased(text);
    const held = wanted.map((one) => own.includes(one));
    const all = [...held, ...(matches[index] ?? [])];
    return require_all ? all.every((isIn) => isIn) : all.some((isIn) => isIn);
  });
}

/** More marks on one letter than any language has: to compose them takes time that grows with their square. */
const HEAPED = /\p{M}{32}/u;

/** A letter and its accent may be one character or two, and look alike. */
const composed = (text: string): string => (HEAPED.test(text) ? text : text.normalize('NFC'));
