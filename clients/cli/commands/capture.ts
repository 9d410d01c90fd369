// polar capture [COMMAND]: a session for an agent that runs here.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { OpenSessionResponse } from '../../../gen/ts/polar/scheduler/v1/external_session_pb.js';
import { PolarError } from '../../../services/common/errors.ts';
import { newId } from '../../../services/common/ids.ts';
import { EXTERNAL } from '../../../services/common/specs/catalogue.ts';
import { type Arguments, type Command, textFlag, URL_FLAGS, UsageError } from '../arguments.ts';
import { type Ended, runHere } from '../foreground.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { complain, progress, say, sayJson } from '../output/say.ts';
import { timeOf } from '../output/table.ts';

/** As of a task file. */
const TIMEOUT_SECONDS = 600;

export const capture: Command = {
  name: 'capture',
  summary: 'record an agent that runs here: open a session, run a command with its addresses, close it',
  operands: ['[COMMAND]', '[ARGUMENT]...'],
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
    reward: {
      type: 'string',
      value: 'NUMBER',
      help: 'what it is worth where the command ends with 0; --reward=-1 where that is below 0',
    },
    'reward-file': {
      type: 'string',
      value: 'FILE',
      help: 'where the command writes what it is worth; read when it has ended, however',
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
    return await closeAfter(url, opened, await runHere(command, rest, opened.env), args);
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
  if (flags['reward'] !== undefined) notBoth('reward', given(['reward-file']));
  if (!closes && operands.length === 0 && given(['reward', 'reward-file']) !== undefined)
    throw new UsageError('a reward is for a COMMAND, or for --close');
  numberIn(flags['reward'], '--reward');
  numberIn(flags['timeout'], '--timeout');
}

/** Throws UsageError where it is none. */
function numberIn(text: unknown, what: string): number | undefined {
  if (typeof text !== 'string') return undefined;
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (!Number.isFinite(number)) throw new UsageError(`${what} must be a number, not ${JSON.stringify(text)}`);
  return number;
}

async function open(url: string, args: Arguments): Promise<OpenSessionResponse> {
  const client = rolloutClient(url);
  const requestId = randomUUID();
  const given = textFlag(args, 'task');
  if (given !== undefined) return await client.openSession({ taskId: given, requestId });
  const taskId = newId('capture');
  await client.submitTask({ spec: ownTask(taskId, args) });
  return await client.openSession({ taskId, requestId }).catch(async (error) => {
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
    budgets: {
      run: durationFromMs(1_000 * (numberIn(args.flags['timeout'], '--timeout') ?? TIMEOUT_SECONDS)),
    },
  });

const idOf = ({ session }: OpenSessionResponse): string => session?.sessionId ?? '';

/** For a shell to read; nothing else is in it. */
function show(opened: OpenSessionResponse, json: boolean): void {
  const { session, apiKey, openaiUrl, baseUrl, env, expireTime } = opened;
  if (!json) {
    for (const [name, value] of Object.entries(env))
      say(`export ${name}='${value.replaceAll("'", `'\\''`)}'`);
    return;
  }
  sayJson({
    ...{ session_id: session?.sessionId, task_id: session?.taskId, attempt: session?.attempt },
    ...{ api_key: apiKey, openai_url: openaiUrl, base_url: baseUrl, env, expire_time: timeOf(expireTime) },
  });
}

async function closeAfter(
  url: string,
  opened: OpenSessionResponse,
  { code, why, isStopped }: Ended,
  args: Arguments,
): Promise<number> {
  const client = rolloutClient(url);
  const sessionId = idOf(opened);
  if (isStopped) {
    await at(url, client.cancelSession({ sessionId }));
    complain(`session ${sessionId} is cancelled: ${why}`);
    return code;
  }
  const reward = rewardOf(code, args);
  const { attempt = 0 } = opened.session ?? {};
  const end = code === 0 ? { outcome: Outcome.COMPLETED } : { outcome: Outcome.HARNESS_ERROR, message: why };
  await at(url, client.closeSession({ sessionId, attempt, ...end, ...(reward !== undefined && { reward }) }));
  progress(
    `session ${sessionId} is closed ${reward === undefined ? 'without a reward' : `with reward ${reward}`}`,
  );
  return code;
}

/** What cannot be read is no reward. */
function rewardOf(code: number, { flags }: Arguments): number | undefined {
  const file = flags['reward-file'];
  if (typeof file !== 'string') return code === 0 ? numberIn(flags['reward'], '--reward') : undefined;
  try {
    return numberIn(readFileSync(file, 'utf8'), file);
  } catch (error) {
    complain(`no reward is given: ${(error as Error).message}`);
    return undefined;
  }
}

async function closeOne(url: string, sessionId: string, args: Arguments): Promise<number> {
  const client = rolloutClient(url);
  const { session } = await at(url, client.getSession({ sessionId }));
  if (session === undefined) throw new PolarError('NOT_FOUND', `there is no session ${sessionId}`);
  const reward = numberIn(args.flags['reward'], '--reward');
  const message = textFlag(args, 'failed');
  await at(
    url,
    client.closeSession({
      ...{ sessionId, attempt: session.attempt, ...(reward !== undefined && { reward }) },
      ...(message !== undefined && { outcome: Outcome.HARNESS_ERROR, message }),
    }),
  );
  progress(`session ${sessionId} is closed`);
  return 0;
}
