// @ts-check
// One task: how it stands, a page of its sessions with why each waits, their rewards.
import { h } from '../element.js';
import { sessionHash, taskHash } from '../routes.js';
import { count, cut, duration, moment, rewardText, stateOf, sum } from '../words.js';
import {
  actionButton,
  badge,
  badges,
  facts,
  failureText,
  fold,
  link,
  pager,
  section,
  table,
  waitingText,
} from './parts.js';
import { rewardPicture } from './picture.js';

/** @import { Session, Task, Waiting } from '../messages.ts' */

const INSTRUCTION_CHARS = 4_000;
const SPEC_CHARS = 20_000;

/**
 * @param {{ task: Task, sessions: Session[], waiting: Record<string, Waiting>, next: string, page: string }} given
 * @param {{ actions: boolean, asked?: string | undefined }} ui
 */
export const taskView = ({ task, sessions, waiting, next, page }, { actions, asked }) => [
  h('h1', {}, 'Task ', task.taskId),
  facts([
    ['Submitted', moment(task.createTime)],
    ['Ended', moment(task.endTime)],
    ['Harness', task.harness ?? ''],
    ['Queue', task.spec?.queue ?? ''],
    ['Sessions', count(sum(task.sessionsByState))],
    ['State', badges(task.sessionsByState)],
    ['Ended as', badges(task.sessionsByOutcome)],
    ['Mean reward', rewardText(task.meanReward)],
  ]),
  actions && task.endTime === undefined
    ? h('p', {}, actionButton('cancel-task', task.taskId, 'Cancel all sessions', asked))
    : '',
  fold('Instruction', false, h('pre', {}, cut(task.spec?.instruction ?? '', INSTRUCTION_CHARS))),
  fold('Task as submitted', false, h('pre', {}, cut(JSON.stringify(task.spec ?? {}, null, 2), SPEC_CHARS))),
  section(
    'Rewards of the sessions below',
    rewardPicture(
      sessions.map(({ sampleIndex, reward }) => ({ label: `sample ${sampleIndex ?? 0}`, reward })),
    ),
  ),
  section(
    'Sessions',
    table(
      'Sessions by sample index',
      HEAD,
      sessions.map((session) => row(session, waiting[session.sessionId])),
    ),
    pager(
      'sessions',
      next === '' ? undefined : taskHash(task.taskId, next),
      page === '' ? undefined : taskHash(task.taskId),
    ),
  ),
];

const HEAD = [
  'Sample',
  'Session',
  'State',
  'Node',
  'Attempt',
  'Reward',
  'Waited',
  'Prepared',
  'Ran',
  'Why it waits or failed',
];

/** @param {Session} session @param {Waiting | undefined} waiting */
function row(session, waiting) {
  const { times = {} } = session;
  return [
    ...[
      session.sampleIndex ?? 0,
      link(sessionHash(session.sessionId), session.sessionId),
      badge(stateOf(session)),
    ],
    ...[session.nodeId ?? '–', session.attempt ?? 0, rewardText(session.reward)],
    ...[duration(times.queueMs), duration(times.prepareMs), duration(times.runMs)],
    h('span', {}, ...whyText(session, waiting)),
  ];
}

/** @param {Session} session @param {Waiting | undefined} waiting @returns {import('../element.js').Given[]} */
export function whyText({ failure, outcome }, waiting) {
  if (waiting !== undefined && outcome === undefined) {
    return waitingText(waiting);
  }
  return failureText(failure);
}

/** The page after one session changed: nothing where it is not on the page. @param {Session[]} sessions @param {Session} changed */
export const withSession = (sessions, changed) =>
  sessions.map((one) => (one.sessionId === changed.sessionId ? changed : one));
