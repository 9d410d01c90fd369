// polar regrade TASK|SESSION: new rewards for what has run.
import { type Session, SessionState } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { EvaluatorSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import {
  type EvaluateSessionResponse,
  EvaluatorService,
} from '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { CALL_TIME_MS_MAX } from '../../../services/common/call-time.ts';
import { createPlainClient } from '../../../services/common/client.ts';
import { Semaphore, sleep } from '../../../services/common/clock.ts';
import { asPolarError, type Reason } from '../../../services/common/errors.ts';
import { EXIT, exitCodeOf } from '../../../services/common/exit-codes.ts';
import { readEvaluatorFile } from '../../../services/common/specs/evaluator-alone.ts';
import { type Arguments, type Command, fileFlag, textFlag, URL_FLAGS, UsageError } from '../arguments.ts';
import { addressOfNode } from '../attempt-place.ts';
import { sessionsOf } from '../audit/selection.ts';
import { credentialsFor } from '../credentials.ts';
import { addressIn, at, rolloutUrl } from '../mesh-clients.ts';
import { pacedProgress, progress, say, sayJson } from '../output/say.ts';
import { LinesFile } from '../regrade/lines-file.ts';
import {
  digestOf,
  type NotRegraded,
  notRegraded,
  type Regraded,
  regradedOf,
  regradedTable,
  shortOf,
  summaryOf,
} from '../regrade/regrade.ts';
import { Unloadable } from '../regrade/unloadable.ts';

const AT_ONCE_DEFAULT = 8;
const AT_ONCE_MAX = 64;
/** None of the other sessions would be graded either. */
const FOR_ALL: readonly Reason[] = ['UNAUTHENTICATED', 'SCOPE_MISSING', 'UNKNOWN_EVALUATOR'];
/** What a node is for a moment whose services are started again, or the mesh while another scheduler takes over. */
const AWAY: readonly Reason[] = [
  'MESH_UNREACHABLE',
  'NODE_LOST',
  'SHUTTING_DOWN',
  'NATS_UNAVAILABLE',
  'NOT_LEADER',
];
/** A node that was there, and is away for longer, is given up. */
const AWAY_MS = 60_000;
const AGAIN_PAUSE_MS = 1_000;
/** Who is not there is not there sooner. */
const UNDER_WAY_MS = 1_000;

export const regrade: Command = {
  name: 'regrade',
  summary: 'grade sessions again that have ended, by their task or by another evaluator; no agent runs',
  operands: ['TASK-OR-SESSION'],
  flags: {
    ...URL_FLAGS,
    evaluator: {
      type: 'string',
      value: 'FILE',
      help: "another evaluator: a file with a task file's `evaluator` part, or a whole one",
    },
    out: {
      type: 'string',
      short: 'o',
      value: 'FILE',
      help: 'add a JSON line for each reward there; sessions that are in it are not graded again',
    },
    'at-once': { type: 'string', value: 'N', help: `sessions at once; default: ${AT_ONCE_DEFAULT}` },
    'node-url': {
      type: 'string',
      value: 'URL',
      help: 'the node that grades; default: where each session ran, at its public_url in the topology',
    },
  },
  examples: [
    'polar regrade calculator',
    'polar regrade calculator --evaluator stricter.yaml -o stricter.jsonl',
    'polar regrade s0123456789ab-0 --evaluator task.yaml --json',
  ],
  async run(args) {
    const file = textFlag(args, 'evaluator');
    const evaluator = file === undefined ? undefined : readEvaluatorFile(file);
    const atOnce = atOnceOf(args);
    const out = fileFlag(args, 'out');
    const sessions = await gradable(args);
    const evaluatorSha256 = digestOf(evaluator);
    await using lines = out === undefined ? undefined : await LinesFile.open(out, evaluatorSha256);
    const job: Job = {
      ...{ args, evaluator, evaluatorSha256, file: lines },
      ...{ contact: { isMade: false }, unloadable: new Unloadable() },
    };
    const rows = await regradeAll(job, sessions, atOnce);
    if (args.flags['json'] !== true) say(`${regradedTable(rows)}\n${summaryOf(rows)}`);
    // None at all is no success of a script's.
    return rows.length > 0 && rows.every((row) => 'reward' in row) ? EXIT.ok : EXIT.failed;
  },
};

interface Job {
  readonly args: Arguments;
  readonly evaluator: EvaluatorSpec | undefined;
  readonly evaluatorSha256: string | null;
  readonly file: LinesFile | undefined;
  /** A node has graded, or begun to. */
  readonly contact: { isMade: boolean };
  readonly unloadable: Unloadable;
}

function atOnceOf(args: Arguments): number {
  const given = textFlag(args, 'at-once');
  const count = given === undefined ? AT_ONCE_DEFAULT : Number(given);
  if (Number.isSafeInteger(count) && count >= 1 && count <= AT_ONCE_MAX) return count;
  throw new UsageError(`--at-once must be a number from 1 to ${AT_ONCE_MAX}`);
}

/** Of a task, those that have ended with something to grade; a session that is named, whatever became of it. */
async function gradable(args: Arguments): Promise<Session[]> {
  const [id = ''] = args.operands;
  const url = rolloutUrl(args);
  const all = await at(url, sessionsOf(url, id));
  if (all.some(({ sessionId }) => sessionId === id)) return all;
  const ended = all.filter(({ state, stats }) => state === SessionState.ENDED && stats !== undefined);
  const without = all.length - ended.length;
  if (without > 0) {
    progress(`${without} of ${all.length} sessions have not ended, or not run to an end, and are left out`);
  }
  return ended;
}

type Row = Regraded | NotRegraded;

/**
 * In the order of the sessions. The first failure that is all sessions' ends it, and those that are being graded; that a node cannot
 * load the evaluator is told when all have been asked.
 */
async function regradeAll(job: Job, sessions: readonly Session[], atOnce: number): Promise<Row[]> {
  const places = new Semaphore(atOnce);
  const stop = new AbortController();
  let done = 0;
  const tell = pacedProgress();
  const asJson = job.args.flags['json'] === true;
  const one = async (session: Session): Promise<Row> => {
    const row =
      job.file?.of(session.sessionId, session.attempt) ?? (await regradeOne(job, session, stop.signal));
    if (!asJson) tell(`${++done} of ${sessions.length} sessions`);
    else if (!job.unloadable.isOf(row)) sayJson(row);
    return shortOf(row);
  };
  try {
    const rows = await Promise.all(sessions.map((session) => places.run(() => one(session), stop.signal)));
    job.unloadable.throwIfAll();
    if (asJson) for (const row of rows) if (job.unloadable.isOf(row)) sayJson(row);
    return rows;
  } finally {
    stop.abort();
  }
}

async function regradeOne(job: Job, session: Session, signal: AbortSignal): Promise<Row> {
  const { args, file, evaluatorSha256, unloadable } = job;
  let url = '';
  try {
    url = addressIn(args, 'node-url') ?? nodeOf(args, session);
    unloadable.check(url);
    const row = regradedOf(session, await gradedAt(job, url, session, signal), evaluatorSha256);
    file?.add(row);
    return row;
  } catch (thrown) {
    const error = asPolarError(thrown);
    const isOfAll = FOR_ALL.includes(error.reason) || exitCodeOf(error) === EXIT.unreachable;
    if (isOfAll || error.reason === 'INVALID_REQUEST') throw error;
    unloadable.failed(url, error);
    return notRegraded(session, error);
  }
}

/** Asked again while the node is away for a moment, or has too many that wait: nothing of the session changes by it. */
async function gradedAt(
  { evaluator, contact }: Job,
  url: string,
  { sessionId }: Session,
  signal: AbortSignal,
): Promise<EvaluateSessionResponse> {
  const client = createPlainClient(EvaluatorService, url, credentialsFor(url));
  const request = { sessionId, ...(evaluator && { evaluator }) };
  const options = { signal, timeoutMs: CALL_TIME_MS_MAX };
  for (let awayMs: number | undefined; ; ) {
    const beginMs = performance.now();
    try {
      const graded = await at(url, client.evaluateSession(request, options), '--node-url');
      contact.isMade = true;
      return graded;
    } catch (thrown) {
      const error = asPolarError(thrown);
      const endMs = performance.now();
      const isFull = error.reason === 'EVALUATIONS_LIMIT';
      if (isFull || endMs - beginMs > UNDER_WAY_MS) {
        contact.isMade = true;
        awayMs = undefined;
      }
      awayMs ??= endMs;
      const isAway = AWAY.includes(error.reason) && contact.isMade && endMs - awayMs < AWAY_MS;
      if (signal.aborted || !(isFull || isAway)) throw error;
    }
    await sleep(AGAIN_PAUSE_MS, signal);
  }
}

const nodeOf = (args: Arguments, { sessionId, attempt, attempts }: Session): string => {
  const nodeId = attempts.find((one) => one.attempt === attempt)?.nodeId ?? '';
  return addressOfNode(args, `session ${sessionId} cannot be graded again`, nodeId);
};
