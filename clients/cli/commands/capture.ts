// polar capture [COMMAND]: a session for an agent that runs here.
import { randomUUID } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type {
  CloseSessionRequestSchema,
  OpenSessionResponse,
} from '../../../gen/ts/polar/scheduler/v1/external_session_pb.js';
import { sleep } from '../../../services/common/clock.ts';
import { asPolarError, PolarError } from '../../../services/common/errors.ts';
import { newId } from '../../../services/common/ids.ts';
import { EXTERNAL } from '../../../services/common/specs/catalogue.ts';
import { type Arguments, type Command, OF_OTHERS, textFlag, URL_FLAGS, UsageError } from '../arguments.ts';
import { agentEnv, direct } from '../capture/environment.ts';
import { renewed } from '../capture/renewal.ts';
import { RewardFile, rewardIn } from '../capture/reward-file.ts';
import { environment, inherited } from '../config.ts';
import { type Ended, runHere, unstopped } from '../foreground.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { complain, progress, say, sayJson } from '../output/say.ts';
import { timeOf } from '../output/table.ts';

/** As of a task file. */
const TIMEOUT_SECONDS = 600;
/** Nobody but this command opens a task of its own: so long it may take to do so, or to be stopped before. */
const OPEN_MS = 300_000;
/** A command that took hours is not lost with a scheduler that is away for a moment; closing is safe to repeat. */
const CLOSE_TRIES_MS = 120_000;
const CLOSE_PAUSE_MS = 1_000;
/** Of a flag; what more the mesh does not take of it, it says itself. */
const SECONDS_MAX = 1_000_000;

export const capture: Command = {
  name: 'capture',
  summary: 'record an agent that runs here: open a session, run a command with its addresses, close it',
  operands: ['[COMMAND]', OF_OTHERS],
  flags: {
    ...URL_FLAGS,
    task: {
      type: 'string',
      value: 'TASK',
      help: 'open the next session of this task, whose harness is `external`; default: a task of its own',
    },
    model: { type: 'string', value: 'NAME', help: "the model's name as the agent knows it" },
    instruction: { type: 'string', value: 'TEXT', help: 'what the task asks for' },
    timeout: { type: 'string', value: 'SECONDS', help: 'how long it may be open; default 600' },
    lease: {
      type: 'string',
      value: 'SECONDS',
      help: 'where this command is killed, its session is lost so long after, and waits to be opened again; default: it ends with its time',
    },
    reward: {
      type: 'string',
      value: 'NUMBER',
      help: 'what it is worth where the command ends with 0; --reward=-1 where that is below 0',
    },
    'reward-file': {
      type: 'string',
      value: 'FILE',
      help: 'where the command writes what it is worth; read when it has ended, however, if it has written there',
    },
    close: {
      type: 'string',
      value: 'SESSION',
      help: 'close one that was opened without a command; what nobody closes ends with its time, without a reward',
    },
    failed: { type: 'string', value: 'WHY', help: 'with --close: the agent failed' },
  },
  examples: [
    'polar capture --model m --reward 1 -- python agent.py --fast',
    'polar capture --task my-group --reward-file reward.txt -- ./agent.sh',
    'eval "$(polar capture --model m)"; python agent.py; polar capture --close "$SESSION_ID" --reward 1',
  ],
  async run(args) {
    checkFlags(args);
    const url = rolloutUrl(args);
    const sessionId = textFlag(args, 'close');
    if (sessionId !== undefined) return await closeOne(url, sessionId, args);
    const opened = await at(url, open(url, args));
    const [command, ...rest] = args.operands;
    if (command === undefined) {
      show(opened, args.flags['json'] === true);
      return 0;
    }
    progress(`session ${idOf(opened)} is open until ${timeOf(opened.expireTime)}`);
    const reward = rewardOf(args);
    const env = agentEnv(inherited, opened.env, opened.baseUrl);
    using _ = renewed(rolloutClient(url), opened.session, leaseMs(args));
    return await closeAfter(url, opened, await runHere(command, rest, env), reward);
  },
};

const OF_A_TASK = ['model', 'instruction', 'timeout'];

function checkFlags({ flags, operands }: Arguments): void {
  const given = (names: readonly string[]): string | undefined =>
    names.find((name) => flags[name] !== undefined);
  const closes = flags['close'] !== undefined;
  const notBoth = (one: string, other: string | undefined): void => {
    if (other !== undefined) throw new UsageError(`--${other} is not for --${one}`);
  };
  if (closes) notBoth('close', given([...OF_A_TASK, 'task', 'reward-file']));
  else if (flags['failed'] !== undefined) throw new UsageError('--failed is for --close');
  if (closes && operands.length > 0) throw new UsageError('--close runs no command');
  if (flags['task'] !== undefined) notBoth('task', given(OF_A_TASK));
  if (flags['lease'] !== undefined && operands.length === 0)
    throw new UsageError('--lease is for a COMMAND: nobody renews it otherwise');
  if (flags['reward'] !== undefined) notBoth('reward', given(['reward-file']));
  if (!closes && operands.length === 0 && given(['reward', 'reward-file']) !== undefined)
    throw new UsageError('a reward is for a COMMAND, or for --close');
  rewardFlag(flags);
  secondsOf(flags, 'timeout');
  secondsOf(flags, 'lease');
}

/** Throws UsageError where it is none. */
function rewardFlag({ reward }: Arguments['flags']): number | undefined {
  if (typeof reward !== 'string') return undefined;
  try {
    return rewardIn(reward, '--reward');
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Throws UsageError where it is none. */
function secondsOf(flags: Arguments['flags'], name: string): number | undefined {
  const text = flags[name];
  if (typeof text !== 'string') return undefined;
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (number > 0 && number <= SECONDS_MAX) return number;
  const range = `above 0 and at most ${SECONDS_MAX}`;
  throw new UsageError(`--${name} must be a number ${range}, not ${JSON.stringify(text)}`);
}

/** 0: there is none. */
const leaseMs = ({ flags }: Arguments): number => 1_000 * (secondsOf(flags, 'lease') ?? 0);

async function open(url: string, args: Arguments): Promise<OpenSessionResponse> {
  const client = rolloutClient(url);
  const requestId = randomUUID();
  const given = textFlag(args, 'task');
  const ms = leaseMs(args);
  const asked = { requestId, ...(ms !== 0 && { lease: durationFromMs(ms) }) };
  if (given !== undefined) return await client.openSession({ taskId: given, ...asked });
  const taskId = newId('capture');
  await client.submitTask({ spec: ownTask(taskId, args) });
  return await client.openSession({ taskId, ...asked }).catch(async (error) => {
    // Nobody else would open it.
    await client.cancelTask({ taskId }).catch(() => {});
    throw error;
  });
}

const ownTask = (taskId: string, args: Arguments) =>
  create(TaskSpecSchema, {
    taskId,
    instruction: textFlag(args, 'instruction') ?? (args.operands.join(' ') || 'What its caller does.'),
    harness: { name: EXTERNAL, modelName: textFlag(args, 'model') ?? '' },
    builder: { strategy: 'prefix_merging' },
    // Nor does anybody open it again.
    maxAttempts: 1,
    budgets: {
      queue: durationFromMs(OPEN_MS),
      run: durationFromMs(1_000 * (secondsOf(args.flags, 'timeout') ?? TIMEOUT_SECONDS)),
    },
  });

const idOf = ({ session }: OpenSessionResponse): string => session?.sessionId ?? '';

/** For a shell to read; nothing else is in it. */
function show(opened: OpenSessionResponse, json: boolean): void {
  const { session, apiKey, openaiUrl, baseUrl, env, expireTime } = opened;
  if (!json) {
    const shown = { ...env, ...direct(inherited, baseUrl), SESSION_ATTEMPT: `${session?.attempt}` };
    for (const [name, value] of Object.entries(shown))
      say(`export ${name}='${value.replaceAll("'", `'\\''`)}'`);
    return;
  }
  sayJson({
    ...{ session_id: session?.sessionId, task_id: session?.taskId, attempt: session?.attempt },
    ...{ api_key: apiKey, openai_url: openaiUrl, base_url: baseUrl, env, expire_time: timeOf(expireTime) },
  });
}

/** What the command is worth, to be asked for when it has ended. */
function rewardOf({ flags }: Arguments): (code: number) => number | undefined {
  const name = flags['reward-file'];
  if (typeof name !== 'string') return (code) => (code === 0 ? rewardFlag(flags) : undefined);
  const file = new RewardFile(name);
  return () => {
    try {
      return file.read();
    } catch (error) {
      return noReward(error);
    }
  };
}

function noReward(why: unknown): undefined {
  complain(`no reward is given: ${(why as Error).message}`);
}

async function closeAfter(
  url: string,
  opened: OpenSessionResponse,
  { code, why, isStopped }: Ended,
  rewardFor: (code: number) => number | undefined,
): Promise<number> {
  const client = rolloutClient(url);
  const sessionId = idOf(opened);
  if (isStopped) {
    await unstopped(() => at(url, client.cancelSession({ sessionId })));
    complain(`session ${sessionId} is cancelled: ${why}`);
    return code;
  }
  const reward = rewardFor(code);
  const { attempt = 0 } = opened.session ?? {};
  const outcome =
    code === 0 ? { outcome: Outcome.COMPLETED } : { outcome: Outcome.HARNESS_ERROR, message: why };
  const given = await closed(url, { sessionId, attempt, ...outcome }, reward);
  progress(
    `session ${sessionId} is closed ${given === undefined ? 'without a reward' : `with reward ${given}`}`,
  );
  return code;
}

type End = Omit<MessageInitShape<typeof CloseSessionRequestSchema>, '$typeName' | 'reward'>;

/** The reward that it was given: one that is refused, as where the task has an evaluator, does not keep a session open. */
async function closed(url: string, end: End, reward: number | undefined): Promise<number | undefined> {
  if (reward === undefined) {
    await patiently(() => at(url, rolloutClient(url).closeSession(end)));
    return undefined;
  }
  try {
    await patiently(() => at(url, rolloutClient(url).closeSession({ ...end, reward })));
    return reward;
  } catch (error) {
    if (asPolarError(error).reason !== 'INVALID_REQUEST') throw error;
    noReward(error);
    return await closed(url, end, undefined);
  }
}

async function patiently<T>(call: () => Promise<T>): Promise<T> {
  const until = performance.now() + CLOSE_TRIES_MS;
  for (let tries = 0; ; tries++) {
    try {
      return await call();
    } catch (thrown) {
      const error = asPolarError(thrown);
      if (!error.retryable || performance.now() > until) throw error;
      if (tries === 0) complain(`${error.reason}: ${error.message}: it is tried again`);
    }
    await sleep(CLOSE_PAUSE_MS);
  }
}

async function closeOne(url: string, sessionId: string, args: Arguments): Promise<number> {
  const client = rolloutClient(url);
  const reward = rewardFlag(args.flags);
  const message = textFlag(args, 'failed');
  const { openSession } = environment;
  // Of one that was lost meanwhile, and opened again by another caller, this shell has an attempt that is over.
  const known = openSession.id === sessionId && openSession.attempt;
  const attempt = known || (await at(url, client.getSession({ sessionId }))).session?.attempt;
  if (attempt === undefined) throw new PolarError('NOT_FOUND', `there is no session ${sessionId}`);
  const end = {
    ...{ sessionId, attempt, ...(reward !== undefined && { reward }) },
    ...(message !== undefined && { outcome: Outcome.HARNESS_ERROR, message }),
  };
  await patiently(() => at(url, client.closeSession(end)));
  progress(`session ${sessionId} is closed`);
  return 0;
}
