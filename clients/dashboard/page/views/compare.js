// @ts-check
// Two tasks side by side.
import { h } from '../element.js';
import { taskHash } from '../routes.js';
import { count, duration, moment, rewardText, sum } from '../words.js';
import { badges, link, section, table } from './parts.js';
import { rewardPicture, STAGES } from './picture.js';

/** @import { Session, StageTimes, Task } from '../messages.ts' */

/** @typedef {{ task: Task, sessions: Session[] }} Side `sessions`: the first ones by sample index */

/** @param {[Side, Side]} sides */
export const compareView = (sides) => [
  h('h1', {}, 'Two tasks side by side'),
  table(
    'The two tasks',
    ['', ...sides.map(({ task }) => task.taskId)],
    [
      ['Task', ...sides.map(({ task }) => link(taskHash(task.taskId), task.taskId))],
      ['Submitted', ...sides.map(({ task }) => moment(task.createTime))],
      ['Harness', ...sides.map(({ task }) => task.harness ?? '')],
      ['Sessions', ...sides.map(({ task }) => count(sum(task.sessionsByState)))],
      ['Ended as', ...sides.map(({ task }) => h('span', {}, ...badges(task.sessionsByOutcome)))],
      ['Mean reward', ...sides.map(({ task }) => rewardText(task.meanReward))],
      ...STAGES.map((stage) => [
        `Mean ${stage}, of those below`,
        ...sides.map(({ sessions }) => duration(meanOf(sessions, `${stage}Ms`))),
      ]),
      ['Mean tokens trained, of those below', ...sides.map(({ sessions }) => count(meanTrained(sessions)))],
    ],
  ),
  ...sides.map(({ task, sessions }) =>
    section(
      `Rewards of ${task.taskId}, its first ${count(sessions.length)} sessions`,
      rewardPicture(
        sessions.map(({ sampleIndex, reward }) => ({ label: `sample ${sampleIndex ?? 0}`, reward })),
      ),
    ),
  ),
];

/** Over the sessions that reached the stage. @param {Session[]} sessions @param {keyof StageTimes} stage */
function meanOf(sessions, stage) {
  const times = sessions.map(({ times = {} }) => Number(times[stage] ?? 0)).filter((ms) => ms > 0);
  return times.length === 0 ? 0 : Math.round(times.reduce((all, ms) => all + ms, 0) / times.length);
}

/** @param {Session[]} sessions */
function meanTrained(sessions) {
  const built = sessions.flatMap(({ stats }) =>
    stats === undefined ? [] : [Number(stats.trainedTokens ?? 0)],
  );
  return built.length === 0 ? 0 : Math.round(built.reduce((all, n) => all + n, 0) / built.length);
}
