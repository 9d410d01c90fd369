// The account of a storm: what was asked for, what came of it, and what must not be.
import { Outcome, type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { GROUP_ID } from '../../services/scheduler/domain/session.ts';
import type { LoggedBatch } from './trainer.ts';

export interface Entry {
  readonly what: string;
  readonly count: number;
  /** What it must be; undefined: told for its own sake. */
  readonly expected?: number;
  /** What is wrong. */
  readonly wrong?: readonly string[];
}

export interface Evidence {
  /** Session ids of each task as the acknowledged submit gave them. */
  readonly submitted: ReadonlyMap<string, readonly string[]>;
  readonly sessions: readonly Session[];
  /** Session to the times that the state log has its end. */
  readonly ends: ReadonlyMap<string, number>;
  readonly batches: readonly LoggedBatch[];
  /** Processes of sandboxes that were killed: each may have cost one harness, or one step of a preparation, its good end. */
  readonly harnessKills: number;
}

/** Must be nothing. */
export const none = (what: string, wrong: readonly string[]): Entry => ({
  ...{ what, wrong },
  count: wrong.length,
  expected: 0,
});

export function accountOf(evidence: Evidence): Entry[] {
  const { submitted, sessions } = evidence;
  const asked = [...submitted.values()].flat();
  const outcomes = Map.groupBy(sessions, ({ outcome }) => Outcome[outcome] ?? 'none');
  const failed = sessions.filter((one) => one.outcome !== Outcome.COMPLETED && !mayBeStruck(one)).map(told);
  const struck = sessions.filter(mayBeStruck).map(told);
  const surplus = struck.slice(evidence.harnessKills);
  return [
    { what: 'tasks acknowledged', count: submitted.size },
    { what: 'sessions of them', count: asked.length },
    { what: 'sessions ended', count: ended(sessions).length, expected: asked.length },
    ...[...outcomes].map(([name, those]) => ({ what: `… ${name.toLowerCase()}`, count: those.length })),
    none('sessions that are unknown', without(asked, idsOf(sessions))),
    none('sessions that nobody asked for', without(idsOf(sessions), asked)),
    none('sessions that ended otherwise than once', notOnce(asked, evidence.ends)),
    none('sessions that ended as no storm explains', [...failed, ...surplus]),
    { what: 'attempts', count: sessions.reduce((sum, { attempt }) => sum + attempt, 0) },
    ...causes(sessions),
    none('attempts repeated for what has no name', unnamed(sessions)),
    none('attempts that were not infrastructure’s and were repeated', wronglyRepeated(sessions)),
    ...ofTrainer(evidence, asked),
  ];
}

/** As one ends whose process in a sandbox was killed. */
const mayBeStruck = ({ outcome, failure }: Session): boolean =>
  outcome === Outcome.HARNESS_ERROR || failure?.reason === 'PREPARE_FAILED';

/** As sessions were retried or carried over. */
export const groupsOf = (sessions: readonly Session[]): Set<string> =>
  new Set(sessions.map(({ taskId, groupId }) => `${taskId} ${groupId}`));

function ofTrainer({ batches, sessions }: Evidence, asked: readonly string[]): Entry[] {
  const trajectories = batches.flatMap(({ groupId, trajectories }) =>
    trajectories.map((one) => ({ ...one, groupId })),
  );
  const ids = trajectories.map(({ sessionId }) => sessionId);
  const groups = batches.map(({ taskId, groupId }) => `${taskId} ${groupId}`);
  const byId = new Map(sessions.map((session) => [session.sessionId, session]));
  const empty = trajectories.filter(({ outcome, traces }) => outcome === Outcome.COMPLETED && traces === 0);
  const otherwise = trajectories.filter(({ sessionId, groupId, attempt, outcome, reward }) => {
    const session = byId.get(sessionId);
    if (session?.groupId !== groupId) return true;
    return session.attempt !== attempt || session.outcome !== outcome || (session.reward ?? null) !== reward;
  });
  const later = sessions.filter(({ groupId }) => groupId !== GROUP_ID);
  return [
    { what: 'groups in the trainer’s log', count: batches.length, expected: groupsOf(sessions).size },
    { what: 'stragglers carried over', count: later.length },
    none('groups twice', twice(groups)),
    { what: 'trajectories in it', count: trajectories.length, expected: asked.length },
    none('trajectories twice', twice(ids)),
    none('trajectories missing', without(asked, ids)),
    none('completed trajectories without a trace', idsOf(empty)),
    none('trajectories of another group, attempt, outcome or reward than the session', idsOf(otherwise)),
  ];
}

/** The table, with what is wrong below it. */
export function tableOf(entries: readonly Entry[]): string {
  const width = Math.max(...entries.map(({ what }) => what.length));
  const lines = entries.map(({ what, count, expected }) => {
    const verdict =
      expected === undefined ? '' : count === expected ? '  ok' : `  WRONG: must be ${expected}`;
    return `${what.padEnd(width)} ${String(count).padStart(7)}${verdict}`;
  });
  const wrong = entries.flatMap(({ what, wrong = [] }) => wrong.slice(0, 20).map((one) => `${what}: ${one}`));
  return [...lines, ...wrong].join('\n');
}

export const isRight = ({ count, expected }: Entry): boolean => expected === undefined || count === expected;

const ended = (sessions: readonly Session[]): Session[] =>
  sessions.filter(({ state }) => state === SessionState.ENDED);

const idsOf = (some: readonly { readonly sessionId: string }[]): string[] =>
  some.map(({ sessionId }) => sessionId);

const without = (all: readonly string[], known: readonly string[]): string[] => {
  const set = new Set(known);
  return all.filter((one) => !set.has(one));
};

const twice = (all: readonly string[]): string[] => all.filter((one, i) => all.indexOf(one) < i);

const notOnce = (asked: readonly string[], ends: ReadonlyMap<string, number>): string[] =>
  asked.filter((id) => ends.get(id) !== 1).map((id) => `${id}: ${ends.get(id) ?? 0}`);

const told = ({ sessionId, outcome, attempt, nodeId, failure }: Session): string =>
  `${sessionId}: ${Outcome[outcome]} in attempt ${attempt} on ${nodeId}: ${failure?.reason} ${failure?.message}`;

/** Why attempts were repeated. */
function causes(sessions: readonly Session[]): Entry[] {
  const earlier = sessions.flatMap(({ attempts }) => attempts.slice(0, -1));
  const byReason = Map.groupBy(earlier, ({ failure }) => failure?.reason ?? 'without a reason');
  return [...byReason].map(([reason, those]) => ({ what: `… repeated for ${reason}`, count: those.length }));
}

const wronglyRepeated = (sessions: readonly Session[]): string[] =>
  sessions
    .filter(({ attempts }) => attempts.slice(0, -1).some(({ failure }) => failure?.infrastructure !== true))
    .map(({ sessionId }) => sessionId);

/** INTERNAL: something broke that nobody thought of. */
const unnamed = (sessions: readonly Session[]): string[] =>
  sessions.flatMap(({ sessionId, attempts }) =>
    attempts.flatMap(({ attempt, failure }) =>
      failure?.reason === 'INTERNAL' ? [`${sessionId}.${attempt}: ${failure.message}`] : [],
    ),
  );
