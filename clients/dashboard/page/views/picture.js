// @ts-check
// Pictures as SVG: rewards of sessions, sessions over time, stages of an attempt.
import { h } from '../element.js';
import { duration, rewardText } from '../words.js';

/** @import { StageTimes, Stage, Summary } from '../messages.ts' */

const WIDTH = 720;
const HEIGHT = 96;
/** Few bars are no wider than of so many. */
const BARS_MIN = 40;

/**
 * A bar for each session by sample index, from the zero line; one without a reward is a mark below it.
 * @param {{ label: string, reward: number | undefined }[]} sessions
 */
export function rewardPicture(sessions) {
  const rewards = sessions.flatMap(({ reward }) => (reward === undefined ? [] : [reward]));
  const bottom = Math.min(0, ...rewards);
  const top = Math.max(0, ...rewards) || (bottom < 0 ? 0 : 1);
  const scale = (HEIGHT - 12) / (top - bottom || 1);
  const zero = top * scale + 2;
  const step = WIDTH / Math.max(BARS_MIN, sessions.length);
  const bars = sessions.map(({ label, reward }, i) => {
    const [value, kind] = reward === undefined ? [0, 'none'] : [reward, reward < 0 ? 'negative' : 'positive'];
    const high = reward === undefined ? 3 : Math.max(1.5, Math.abs(value) * scale);
    const y = reward === undefined ? HEIGHT - 4 : value < 0 ? zero : zero - high;
    const place = {
      x: round(i * step + step * 0.1),
      y: round(y),
      width: round(step * 0.8),
      height: round(high),
    };
    return h('rect', { class: `bar ${kind}`, ...place }, h('title', {}, `${label}: ${rewardText(reward)}`));
  });
  const range =
    rewards.length === 0
      ? ''
      : `, from ${rewardText(Math.min(...rewards))} to ${rewardText(Math.max(...rewards))}`;
  const said = `Rewards of ${sessions.length}, ${rewards.length} of them with one${range}`;
  return picture(
    said,
    HEIGHT,
    h('line', { class: 'axis', x1: 0, x2: WIDTH, y1: round(zero), y2: round(zero) }),
    ...bars,
  );
}

/** @param {string} what @param {number[]} values the newest last */
export function sparkline(what, values) {
  const top = Math.max(...values, 0);
  const said = `${what}: now ${values.at(-1)?.toFixed(2) ?? '–'}, at most ${top.toFixed(2)}`;
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, i) => `${round(i * step)} ${round(42 - (value / (top || 1)) * 38)}`);
  return picture(
    said,
    44,
    values.length < 2 ? undefined : h('path', { class: 'curve', d: `M${points.join('L')}` }),
  );
}

/** @type {Stage[]} */
export const STAGES = ['queue', 'prepare', 'ready', 'run', 'build', 'evaluate'];

/** Stages one behind another; building and grading, which go on at once, one below the other. @param {StageTimes} times */
export function timeline(times) {
  const ms = STAGES.map((stage) => Number(times[`${stage}Ms`] ?? 0));
  const [build = 0, evaluate = 0] = ms.slice(4);
  const before = ms.slice(0, 4).reduce((all, one) => all + one, 0);
  const scale = WIDTH / Math.max(1, before + Math.max(build, evaluate));
  let at = 0;
  const bars = STAGES.map((stage, i) => {
    const own = ms[i] ?? 0;
    const side = i >= 4;
    const x = side ? before : at;
    if (!side) at += own;
    const place = { x: round(x * scale), width: round(Math.max(own > 0 ? 1 : 0, own * scale)) };
    const [y, height] = side ? [i === 4 ? 2 : 14, 11] : [2, 23];
    return h(
      'rect',
      { class: `stage ${stage}`, ...place, y, height },
      h('title', {}, `${stage} ${duration(own)}`),
    );
  });
  const said = STAGES.map((stage, i) => `${stage} ${duration(ms[i])}`).join(', ');
  return picture(`Stages: ${said}`, 28, ...bars);
}

/** Calls at one time that are drawn one below the other; more lie on the last ones. */
const LANES_MAX = 8;
const LANE = 12;

/**
 * Calls over time: of each what it waited at the proxy, what it took to its first token, and the rest.
 * @param {Summary[]} calls one or more
 */
export function callsPicture(calls) {
  const begun = calls.toSorted((a, b) => a.start_ms - b.start_ms);
  const first = begun[0]?.start_ms ?? 0;
  const span = Math.max(1, ...begun.map(({ start_ms, total_ms }) => start_ms + total_ms - first));
  const scale = WIDTH / span;
  /** @type {number[]} when each lane is free */
  const lanes = [];
  let [busy, end] = [0, first];
  const bars = begun.flatMap((call) => {
    const over = call.start_ms + call.total_ms;
    busy += Math.max(0, over - Math.max(call.start_ms, end));
    end = Math.max(end, over);
    const free = lanes.findIndex((at) => at <= call.start_ms);
    const lane = free === -1 ? Math.min(lanes.length, LANES_MAX - 1) : free;
    lanes[lane] = over;
    const said = `${call.call_id}: ${duration(call.total_ms)}, first token after ${duration(call.first_token_ms)}`;
    const parts = partsOf(call).map(([kind, from, to]) => ({
      ...{ class: `call ${kind}`, x: round((call.start_ms - first + from) * scale), y: lane * LANE + 2 },
      ...{ width: round(Math.max(0.5, (to - from) * scale)), height: LANE - 2 },
    }));
    return parts.map((part) => h('rect', part, h('title', {}, said)));
  });
  const text = `Model calls: ${calls.length} in ${duration(span)}, one or more in progress for ${duration(busy)}`;
  return h('div', {}, picture(text, lanes.length * LANE + 4, ...bars), h('p', { class: 'dim' }, text));
}

/** @param {Summary} call @returns {[kind: string, from: number, to: number][]} in ms from its begin */
function partsOf({ queue_ms, first_token_ms, total_ms }) {
  const first = first_token_ms > 0 ? first_token_ms : total_ms;
  /** @type {[string, number, number][]} */
  const parts = [
    ['queue', 0, queue_ms],
    ['prefill', queue_ms, first],
    ['decode', first, total_ms],
  ];
  return parts.filter(([, from, to]) => to > from);
}

/** @param {string} said @param {number} height @param {...(import('../element.js').Given)} children */
const picture = (said, height, ...children) =>
  h(
    'svg',
    {
      role: 'img',
      'aria-label': said,
      viewBox: `0 0 ${WIDTH} ${height}`,
      preserveAspectRatio: 'none',
      height,
    },
    h('title', {}, said),
    ...children,
  );

/** @param {number} n */
const round = (n) => Math.round(n * 10) / 10;
