// polar watch TASK...
import process from 'node:process';
import { type Session, SessionSchema } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { EXIT } from '../../../services/common/exit-codes.ts';
import { type Arguments, type Command, URL_FLAGS } from '../arguments.ts';
import { at, rolloutUrl } from '../mesh-clients.ts';
import { jsonOf } from '../output/json.ts';
import { progress, say, sayJson } from '../output/say.ts';
import { failureLines, sessionTable, stateName } from '../output/table.ts';
import { stopCode } from '../stops.ts';
import { followTasks, isComplete } from '../watching.ts';

export const watch: Command = {
  name: 'watch',
  summary: 'follow tasks to their end, then print their sessions',
  operands: ['TASK...'],
  flags: { ...URL_FLAGS },
  examples: ['polar watch calculator', 'polar watch calculator --json | jq .state'],
  run: (args) => runWatch(args),
};

/**
 * Follows the tasks that the operands name, of a scheduler that `hasAnswered` or not. Exit code 0 when every session ended
 * with a trajectory, or was stopped early; that of a command which was stopped, where this one was.
 */
export async function runWatch(args: Arguments, hasAnswered = false): Promise<number> {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => stop.abort(signal);
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    const url = rolloutUrl(args);
    const json = args.flags['json'] === true;
    const show = json ? (one: Session) => sayJson(jsonOf(SessionSchema, one)) : progressLines();
    const options = { signal: stop.signal, contact: { isMade: hasAnswered } };
    const tasks = await at(url, followTasks(url, args.operands, show, options));
    for (const [i, sessions] of json ? [] : tasks.entries()) {
      if (tasks.length > 1) say(`task ${args.operands[i]}`);
      printSessions(sessions);
    }
    // What it has not seen may be without a trajectory, or none's failure yet.
    if (stop.signal.aborted) return stopCode(stop.signal.reason as NodeJS.Signals);
    return tasks.every(isComplete) ? EXIT.ok : EXIT.failed;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

/** One line a change, with the time since the first, and the first line of why it failed, or goes again. */
export function progressLines(): (session: Session) => void {
  const started = performance.now();
  return (session) => {
    const at = ((performance.now() - started) / 1000).toFixed(1).padStart(6);
    const attempt = session.attempt > 1 ? ` (attempt ${session.attempt})` : '';
    const reward = session.reward === undefined ? '' : `, reward ${session.reward}`;
    progress(`${at} s  ${session.sessionId}  ${stateName(session)}${attempt}${reward}${whyOf(session)}`);
  };
}

const whyOf = ({ failure }: Session): string =>
  failure === undefined ? '' : `, ${failure.reason}: ${failure.message.trim().split('\n')[0]}`;

export function printSessions(sessions: readonly Session[]): void {
  say(sessionTable(sessions));
  const failures = failureLines(sessions);
  if (failures.length > 0) say(`failures:\n${failures.join('\n')}`);
}
