// polar rebuild TASK|SESSION, polar rebuild --calls IN.jsonl
import { join } from 'node:path';
import process from 'node:process';
import { type Session, SessionState } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { PolarError } from '../../../services/common/errors.ts';
import { EXIT } from '../../../services/common/exit-codes.ts';
import { programOf } from '../../../tools/built.mjs';
import {
  type Arguments,
  type Command,
  fileFlag,
  TRAJECTORY_FLAGS,
  textFlag,
  URL_FLAGS,
  UsageError,
} from '../arguments.ts';
import { sessionsOf } from '../audit/selection.ts';
import { environment, inherited } from '../config.ts';
import { certificateFiles } from '../credentials.ts';
import { type Child, startChild } from '../mesh/child.ts';
import { at, rolloutUrl, trajectoryUrl } from '../mesh-clients.ts';
import { progress } from '../output/say.ts';
import { ROOT } from '../services.ts';
import { STOPS, stopCode } from '../stops.ts';
import { hasTrajectory } from '../watching.ts';

/** As of the topology's reconstructor.plugin_timeout_seconds. */
const PLUGIN_SECONDS_MAX = 3_600;

export const rebuild: Command = {
  name: 'rebuild',
  summary: 'build recorded calls again with any builder: those of a task, a session or a file',
  operands: ['[TASK-OR-SESSION]'],
  flags: {
    ...URL_FLAGS,
    ...TRAJECTORY_FLAGS,
    builder: {
      type: 'string',
      value: 'NAME',
      help: 'per_request, prefix_merging, or the path of a module of your own; default: prefix_merging',
    },
    'builder-config': {
      type: 'string',
      value: 'JSON',
      help: 'configuration of the builder, or a JSON or YAML file with it',
    },
    'plugin-timeout': {
      type: 'string',
      value: 'SECONDS',
      help: 'longest that a module may take for one session; default: 30',
    },
    calls: {
      type: 'string',
      value: 'FILE',
      help: 'calls as `polar export --calls` writes them, without a mesh; -: standard input',
    },
    traces: { type: 'string', value: 'FILE', help: 'write the traces there' },
  },
  examples: [
    'polar rebuild calculator --builder per_request --traces per-request.jsonl',
    'polar rebuild s0123456789ab-0 --builder team/last-branch.mjs --json',
    'polar export s0123456789ab-0 --calls -o calls.jsonl && polar rebuild --calls calls.jsonl --traces traces.jsonl',
    'polar export s0123456789ab-0 --calls | polar rebuild --calls - --traces traces.jsonl',
    `polar rebuild --builder-config '{"max_trace_tokens": 32768}' --calls calls.jsonl --traces traces.jsonl`,
  ],
  async run(args) {
    const [id] = args.operands;
    if ((id === undefined) === (textFlag(args, 'calls') === undefined)) {
      throw new UsageError('one of TASK-OR-SESSION and --calls is needed');
    }
    const seconds = Number(textFlag(args, 'plugin-timeout') ?? 30);
    if (!(seconds > 0 && seconds <= PLUGIN_SECONDS_MAX)) {
      throw new UsageError(
        `--plugin-timeout must be a number of seconds, above 0 and at most ${PLUGIN_SECONDS_MAX}`,
      );
    }
    fileFlag(args, 'traces');
    const stored = id === undefined ? '' : JSON.stringify(await storedSessions(args, id));
    const child = startChild({
      command: process.execPath,
      args: [programOf(join(ROOT, 'services/reconstructor/rebuild.ts')), ...handedOn(args)],
      env: inherited,
      output: 'inherit',
    });
    const { stdin } = child.process;
    const isPiped = textFlag(args, 'calls') === '-';
    if (isPiped && stdin !== null) process.stdin.pipe(stdin);
    else stdin?.end(stored);
    const code = await endOf(child);
    // A writer there may go on.
    if (isPiped) process.stdin.destroy();
    return code;
  },
};

/** Its exit code; that of a command which was stopped where this one was. */
async function endOf(child: Child): Promise<number> {
  let stop: NodeJS.Signals | undefined;
  const onStop = (signal: NodeJS.Signals): void => {
    // It is cleaning up already.
    if (stop === undefined) void child.stop(signal);
    stop ??= signal;
  };
  for (const signal of STOPS) process.on(signal, onStop);
  const code = await child.ended;
  return stop === undefined || code === EXIT.ok ? code : stopCode(stop);
}

function handedOn(args: Arguments): string[] {
  const given = ['builder', 'builder-config', 'plugin-timeout', 'calls', 'traces'].flatMap((name) => {
    const value = textFlag(args, name);
    return value === undefined ? [] : [`--${name}=${value}`];
  });
  return args.flags['json'] === true ? [...given, '--json'] : given;
}

/** What the rebuilding process has to know of sessions that the mesh has stored. Throws NOT_FOUND, NOT_ENDED. */
async function storedSessions(args: Arguments, id: string): Promise<object> {
  const url = rolloutUrl(args);
  const all = await at(url, sessionsOf(url, id));
  checkEnded(all, id);
  const isTask = all.some(({ sessionId }) => sessionId !== id);
  // Of a task, what trainers get; a session that is named is built whatever became of it.
  const sessions = isTask ? all.filter(hasTrajectory) : all;
  const without = all.length - sessions.length;
  if (without > 0) progress(`${without} of ${all.length} sessions have no trajectory and are left out`);
  const trajectories = trajectoryUrl(args);
  return {
    url: trajectories,
    token: environment.token,
    ...(trajectories.startsWith('https:') && { certificates: certificateFiles(args) }),
    sessions: sessions.map(({ sessionId, attempt, stats }) => ({
      session_id: sessionId,
      attempt,
      calls: stats?.calls ?? 0,
    })),
  };
}

function checkEnded(sessions: readonly Session[], id: string): void {
  const waits = sessions.filter(({ state }) => state !== SessionState.ENDED);
  const [first] = waits;
  if (first === undefined) return;
  const state = SessionState[first.state].toLowerCase();
  const others = waits.length > 1 ? `, and ${waits.length - 1} others of ${sessions.length} have not` : '';
  const of = first.sessionId === id ? '' : ` of task ${id}`;
  throw new PolarError(
    'NOT_ENDED',
    `session ${first.sessionId}${of} has not ended, it is ${state}${others}: \`polar watch\` waits for it`,
  );
}
