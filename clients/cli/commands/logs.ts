// polar logs SESSION: what its harness wrote, and the files that are kept of its sandbox.
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@connectrpc/connect';
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import {
  type GetSessionLogsResponse,
  HarnessService,
} from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { createPlainClient } from '../../../services/common/client.ts';
import { asPolarError, PolarError } from '../../../services/common/errors.ts';
import { type Arguments, type Command, textFlag, URL_FLAGS, UsageError } from '../arguments.ts';
import { credentialsFor } from '../credentials.ts';
import { addressIn, at, rolloutClient, rolloutUrl, topologyOf } from '../mesh-clients.ts';
import { say, sayJson } from '../output/say.ts';
import { table } from '../output/table.ts';
import { addressOf } from '../services.ts';

const FOLLOW_MS = 500;

interface Asked {
  readonly sessionId: string;
  readonly attempt: number;
}

export const logs: Command = {
  name: 'logs',
  summary: "show what a session's harness wrote, its transcript, and the files that were kept",
  operands: ['SESSION'],
  flags: {
    ...URL_FLAGS,
    'node-url': {
      type: 'string',
      value: 'URL',
      help: "the harness-executor of the session's node; default: as the topology has it, on this machine",
    },
    attempt: { type: 'string', value: 'N', help: 'this attempt instead of the last one' },
    stderr: { type: 'boolean', help: 'standard error instead of standard output' },
    follow: { type: 'boolean', short: 'f', help: 'go on until the harness has ended' },
    files: { type: 'boolean', help: 'list the transcript and the other files that were kept' },
    file: { type: 'string', value: 'PATH', help: 'write one of them to standard output' },
  },
  examples: [
    'polar logs s0123456789ab-0 --follow',
    'polar logs s0123456789ab-0 --attempt 1 --stderr',
    'polar logs s0123456789ab-0 --files',
  ],
  async run(args) {
    const attempt = Number(textFlag(args, 'attempt') ?? 0);
    if (!Number.isSafeInteger(attempt) || attempt < 0)
      throw new UsageError('--attempt must be a number from 1');
    const asked = { sessionId: args.operands[0] ?? '', attempt };
    const file = textFlag(args, 'file');
    checkFlags(args.flags, file);
    const url = await nodeUrl(args, asked);
    const client = createPlainClient(HarnessService, url, credentialsFor(url));
    const call = (): Promise<void> => {
      if (args.flags['files'] === true) return listFiles(client, asked, args.flags['json'] === true);
      return file === undefined ? show(client, asked, args) : writeFile(client, asked, file);
    };
    await at(url, call(), '--node-url');
    return 0;
  },
};

/** Output, the list of files, or one of them: what is for another of these is not passed over. */
function checkFlags({ files, follow, stderr, json }: Arguments['flags'], file: string | undefined): void {
  if (files === true && file !== undefined) throw new UsageError('one of --files and --file is enough');
  const isOutput = files !== true && file === undefined;
  if (!isOutput && (follow === true || stderr === true))
    throw new UsageError('--follow and --stderr are not for files');
  if (json === true && file !== undefined) throw new UsageError('--json is not for --file');
}

/** Where the node's harness-executor listens: on its own machine only. */
async function nodeUrl(args: Arguments, { sessionId, attempt }: Asked): Promise<string> {
  const given = addressIn(args, 'node-url');
  if (given !== undefined) return given;
  const url = rolloutUrl(args);
  const { session } = await at(url, rolloutClient(url).getSession({ sessionId }));
  const nodeId = session === undefined ? '' : nodeOf(session, attempt);
  const topology = topologyOf(args);
  if (topology.gateway.nodes.some(({ id }) => id === nodeId)) {
    return addressOf(topology, 'harness-executor', nodeId);
  }
  const where = nodeId === '' ? 'it has not run yet' : `it ran on node ${nodeId}, which the topology has not`;
  throw new PolarError('NOT_FOUND', `no output of ${sessionId}: ${where} (-c, --node-url)`);
}

function nodeOf({ attempts, nodeId }: Session, attempt: number): string {
  const one = attempt === 0 ? attempts.at(-1) : attempts.find((known) => known.attempt === attempt);
  return one?.nodeId ?? (attempt === 0 ? nodeId : '');
}

async function show(client: Client<typeof HarnessService>, asked: Asked, args: Arguments): Promise<void> {
  const name = args.flags['stderr'] === true ? 'stderr' : 'stdout';
  const json = args.flags['json'] === true;
  const follows = args.flags['follow'] === true;
  // A letter may come in two pieces.
  const text = new TextDecoder();
  let { attempt } = asked;
  let offset = 0n;
  for (;;) {
    const request = { ...asked, attempt, stdoutOffset: offset, stderrOffset: offset };
    const log = await client.getSessionLogs(request).catch((error) => notYet(error, args));
    if (log !== undefined) {
      attempt = log.attempt;
      const isNews = log[name].length > 0 || !log.running || !follows;
      if (!json) process.stdout.write(log[name]);
      else if (isNews)
        sayJson({ ...pieceOf(log, name), text: text.decode(log[name], { stream: log.running }) });
      offset = log[`${name}Size`];
      if (!log.running) return;
    }
    if (!follows) return;
    await sleep(FOLLOW_MS);
  }
}

/** As JSON: what has come, and how far that is of all of it. */
const pieceOf = (log: GetSessionLogsResponse, name: 'stdout' | 'stderr') => ({
  ...{ attempt: log.attempt, running: log.running, stream: name, size_bytes: Number(log[`${name}Size`]) },
  ...(!log.running && { exit_code: log.exitCode }),
});

/** Who follows waits for a run that has not begun. */
function notYet(error: unknown, args: Arguments): GetSessionLogsResponse | undefined {
  if (args.flags['follow'] === true && asPolarError(error).reason === 'NOT_FOUND') return undefined;
  throw error;
}

async function listFiles(client: Client<typeof HarnessService>, asked: Asked, json: boolean): Promise<void> {
  const { attempt, artifacts, problems } = await client.listSessionArtifacts(asked);
  if (json) {
    const files = artifacts.map(({ path, sizeBytes, transcript }) => ({
      ...{ path, transcript },
      size_bytes: Number(sizeBytes),
    }));
    return sayJson({ attempt, files, problems });
  }
  const rows = artifacts.map(({ path, sizeBytes, transcript }) => [
    ...[path, String(sizeBytes), transcript ? 'transcript' : ''],
  ]);
  say(table(['file', 'bytes', ''], rows));
  for (const problem of problems) say(`not kept: ${problem}`);
}

async function writeFile(client: Client<typeof HarnessService>, asked: Asked, path: string): Promise<void> {
  const { content } = await client.getSessionArtifact({ ...asked, path });
  process.stdout.write(content);
}
