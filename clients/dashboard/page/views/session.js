// @ts-check
// One session: how it ended, why it has its reward, its stages, what was recorded, every attempt, what the harness wrote,
// what was said.
import { h } from '../element.js';
import { taskHash } from '../routes.js';
import { count, cut, duration, moment, rewardText, stateOf } from '../words.js';
import { evaluationPart } from './evaluation.js';
import { actionButton, badge, facts, failureText, fold, link, section, table } from './parts.js';
import { callsPicture, STAGES, timeline } from './picture.js';
import { whyText } from './task.js';

/** @import { Attempt, Call, Evaluation, Message, Output, Session, Stats, Summary, Waiting } from '../messages.ts' */

const TEXT_CHARS = 20_000;

/**
 * @typedef {{ session: Session, waiting?: Waiting | undefined, output?: Output | undefined, outputProblem?: string | undefined,
 *   evaluation?: Evaluation | undefined, evaluationProblem?: string | undefined,
 *   calls: Call[], callsProblem?: string | undefined, callsDone: boolean, summaries: Summary[] }} Given `callsDone`: they were read
 */

/** @param {Given} given @param {{ actions: boolean, asked?: string | undefined }} ui */
export const sessionView = (
  {
    session,
    waiting,
    output,
    outputProblem,
    evaluation,
    evaluationProblem,
    calls,
    callsProblem,
    callsDone,
    summaries,
  },
  { actions, asked },
) => [
  h('h1', {}, 'Session ', session.sessionId),
  facts([
    ['Task', link(taskHash(session.taskId), session.taskId)],
    ['Sample', session.sampleIndex ?? 0],
    ['State', badge(stateOf(session))],
    ['Harness', session.harness ?? ''],
    ['Node', session.nodeId ?? '–'],
    ['Submitted', moment(session.createTime)],
    ['Ended', moment(session.endTime)],
    ['Reward', rewardText(session.reward)],
    ['Why it waits or failed', whyText(session, waiting)],
  ]),
  actions && session.endTime === undefined
    ? h('p', {}, actionButton('cancel-session', session.sessionId, 'Cancel this session', asked))
    : '',
  evaluationPart(evaluation, evaluationProblem),
  section('Stages', timeline(session.times ?? {}), stageTable(session)),
  section('Recorded', ...recorded(session.stats)),
  section('Attempts', attemptTable(session.attempts ?? [])),
  section('Output of the harness', ...outputParts(output, outputProblem)),
  section(
    'Model calls',
    summaries.length > 0 ? callsPicture(summaries) : '',
    ...callParts({ session, calls, callsProblem, callsDone, summaries }),
  ),
];

/** @param {Session} session */
const stageTable = ({ times = {} }) =>
  table(
    'Time in each stage',
    [...STAGES, 'total'],
    [[...STAGES.map((stage) => duration(times[`${stage}Ms`])), duration(times.totalMs)]],
  );

/** @param {Stats | undefined} stats */
function recorded(stats) {
  if (stats === undefined) return [h('p', { class: 'dim' }, 'The trajectory is not built.')];
  const masked = Object.entries(stats.maskedTokens ?? {});
  const lost = masked.reduce((all, [, n]) => all + Number(n), 0);
  const sampled = Number(stats.sampledTokens ?? 0);
  const kept = Number(stats.trainedTokens ?? 0) + lost === sampled && (stats.usageMismatches ?? 0) === 0;
  return [
    facts([
      ['Model calls', count(stats.calls)],
      ['Traces', count(stats.traces)],
      ['Context tokens', count(stats.contextTokens)],
      ['Sampled tokens', count(sampled)],
      [
        'Conserved',
        h(
          'span',
          { class: `badge ${kept ? 'good' : 'bad'}` },
          kept
            ? 'sampled = trained + masked = usage'
            : `no: ${count(stats.usageMismatches)} calls differ from the engine's usage`,
        ),
      ],
    ]),
    table(
      'Sampled tokens',
      ['What became of them', 'Tokens'],
      [
        ['trained', count(stats.trainedTokens)],
        ...masked.map(([reason, n]) => [`masked: ${reason.replaceAll('_', ' ')}`, count(n)]),
      ],
    ),
  ];
}

/** @param {readonly Attempt[]} attempts */
const attemptTable = (attempts) =>
  table(
    'Attempts, the first one on top',
    ['Attempt', 'Node', 'Began', 'Ended', 'Prepared', 'Waited', 'Ran', 'Denied connections', 'Why it ended'],
    attempts.map(({ attempt, nodeId, startTime, endTime, times = {}, denied, failure }) => [
      ...[attempt, nodeId ?? '–', moment(startTime), moment(endTime)],
      ...[duration(times.prepareMs), duration(times.readyMs), duration(times.runMs)],
      denied === undefined ? '–' : `${denied.count ?? 0} ${(denied.targets ?? []).join(' ')}`,
      h('span', {}, ...failureText(failure)),
    ]),
    'none was dispatched',
  );

/** @param {Output | undefined} output @param {string | undefined} problem */
function outputParts(output, problem) {
  if (output === undefined) return [h('p', { class: 'dim' }, problem ?? 'Nothing yet.')];
  const { attempt, running, exitCode, skipped } = output;
  const part = (/** @type {string} */ title, /** @type {string} */ text, /** @type {number} */ left) =>
    fold(
      `${title}${left > 0 ? `, without its first ${count(left)} bytes` : ''}`,
      title === 'Standard output',
      h('pre', { tabindex: 0, 'aria-label': title }, text),
    );
  return [
    h(
      'p',
      {},
      `Attempt ${attempt}, ${running ? 'running' : `exit code ${exitCode}`}. All of it, and files that were kept: polar logs.`,
    ),
    part('Standard output', output.stdout, skipped.stdout),
    part('Standard error', output.stderr, skipped.stderr),
  ];
}

/** @param {Given} given */
function callParts({
  session: { stats, endTime },
  calls,
  callsProblem: problem,
  callsDone: done,
  summaries,
}) {
  const took = new Map(summaries.map((summary) => [summary.call_id, summary]));
  const all = stats?.calls ?? calls.length;
  const none =
    stats === undefined && endTime === undefined
      ? 'None was there when the page was opened; they are read again when the trajectory is built.'
      : 'None was recorded.';
  const rest =
    done && calls.length < all
      ? `The first ${count(calls.length)} of ${count(all)} are here; all of them: polar export.`
      : '';
  return [
    problem === undefined ? '' : h('p', { class: 'dim' }, problem),
    done && all === 0 ? h('p', { class: 'dim' }, none) : '',
    ...calls.map((call, i) => callPart(call, i, calls[i - 1], took.get(call.call_id))),
    rest === '' ? '' : h('p', { class: 'note' }, rest),
  ];
}

/**
 * What is new since the call before, and the reply.
 * @param {Call} call @param {number} i @param {Call | undefined} before @param {Summary | undefined} summary
 */
function callPart(call, i, before, summary) {
  const { messages = [], reply } = call;
  const shared = sharedWith(messages, before);
  const about = [
    ...[call.role, call.trainable === false ? 'frozen model' : '', call.finish_reason],
    ...(summary === undefined
      ? []
      : [
          duration(summary.total_ms),
          `${count(summary.prompt_tokens)} tokens in, ${count(summary.sampled_tokens)} out`,
          summary.error_reason,
        ]),
  ].filter((text) => text);
  return fold(
    `${i + 1}. ${call.call_id}: ${about.join(', ')}`,
    i === 0,
    shared > 0 ? h('p', { class: 'dim' }, `${count(shared)} messages as in the call before`) : '',
    ...messages.slice(shared).map((message) => messagePart(message, 'message')),
    messagePart(reply ?? null, 'reply'),
  );
}

/** @param {readonly (Message | null)[]} messages @param {Call | undefined} before */
function sharedWith(messages, before) {
  const known = [...(before?.messages ?? []), before?.reply];
  const first = messages.findIndex((message, i) => JSON.stringify(message) !== JSON.stringify(known[i]));
  return first === -1 ? messages.length : first;
}

/** @param {Message | null} message @param {string} kind */
function messagePart(message, kind) {
  if (message === null)
    return h(
      'p',
      { class: 'dim' },
      kind === 'reply' ? 'no reply was delivered whole' : 'a message that is not kept',
    );
  const parts = [
    ['thinks', message.reasoning_content],
    ['', message.content],
    ['calls tools', message.tool_calls],
  ].filter(([, value]) => value !== undefined && value !== null && value !== '');
  return h(
    'div',
    { class: `message ${kind}` },
    h('h3', {}, message.role ?? kind),
    ...parts.map(([title, value]) =>
      h('pre', {}, `${title === '' ? '' : `${title}: `}${cut(textOf(value), TEXT_CHARS)}`),
    ),
  );
}

/** @param {unknown} value of a message: text, parts or tool calls */
const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));
