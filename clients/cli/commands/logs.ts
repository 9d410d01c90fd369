// polar logs SESSION: what its harness wrote, and the files that are kept of its sandbox.
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@connectrpc/connect';
import {
  type GetSessionLogsResponse,
  HarnessService,
} from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { createPlainClient } from '../../../services/common/client.ts';
import { asPolarError, PolarError } from '../../../services/common/errors.ts';
import { type Arguments, attemptFlag, type Command, textFlag, URL_FLAGS, UsageError } from '../arguments.ts';
import { type AskedAttempt, type Place, placeNow, placeOf } from '../attempt-place.ts';
import { credentialsFor } from '../credentials.ts';
import { at } from '../mesh-clients.ts';
import { progress, say, sayJson } from '../output/say.ts';
import { table } from '../output/table.ts';

const FOLLOW_MS = 500;
/** Time without the scheduler and the node after which following is given up, where there was an answer before. */
const UNREACHABLE_MS = 30_000;

export const logs: Command = {
  name: 'logs',
  summary: "show what a session's harness wrote, its transcript, and the files that were kept",
  operands: ['SESSION'],
  flags: {
    ...URL_FLAGS,
    'node-url': {
      type: 'string',
      value: 'URL',
      help: "the session's node; default: its public_url in the topology",
    },
    attempt: { type: 'string', value: 'N', help: 'this attempt instead of the last one' },
    stderr: { type: 'boolean', help: 'standard error instead of standard output' },
    follow: { type: 'boolean', short: 'f', help: 'wait for the harness, and go on until it has ended' },
    files: { type: 'boolean', help: 'list the transcript and the other files that were kept' },
    file: {
      type: 'string',
      value: 'PATH',
      help: 'write one of them to standard output, by its path or as the task names it',
    },
  },
  examples: [
    'polar logs s0123456789ab-0 --follow',
    'polar logs s0123456789ab-0 --attempt 1 --stderr',
    'polar logs s0123456789ab-0 --files',
  ],
  async run(args) {
    const attempt = attemptFlag(args);
    const asked = { sessionId: args.operands[0] ?? '', attempt };
    const file = textFlag(args, 'file');
    checkFlags(args.flags, file);
    if (args.flags['follow'] === true) await follow(asked, args);
    else await showNow(asked, args, file);
    return 0;
  },
};

/** What is there at this moment. */
async function showNow(asked: AskedAttempt, args: Arguments, file: string | undefined): Promise<void> {
  const place = await placeOf(args, asked, false);
  if (place === undefined) {
    throw new PolarError('NOT_FOUND', `no output of ${asked.sessionId}: it has not run yet (--follow waits)`);
  }
  const { url } = place;
  const client = clientOf(url);
  if (args.flags['files'] === true)
    await at(url, listFiles(client, asked, args.flags['json'] === true), '--node-url');
  else if (file !== undefined) await at(url, writeFile(client, asked, file), '--node-url');
  else {
    const shown = new Shown(args);
    shown.end(await shown.read({ ...place, attempt: asked.attempt }, asked.sessionId));
  }
}

const clientOf = (url: string): Client<typeof HarnessService> =>
  createPlainClient(HarnessService, url, credentialsFor(url));

/** Output, the list of files, or one of them: what is for another of these is not passed over. */
function checkFlags({ files, follow, stderr, json }: Arguments['flags'], file: string | undefined): void {
  if (files === true && file !== undefined) throw new UsageError('one of --files and --file is enough');
  const isOutput = files !== true && file === undefined;
  if (!isOutput && (follow === true || stderr === true))
    throw new UsageError('--follow and --stderr are not for files');
  if (json === true && file !== undefined) throw new UsageError('--json is not for --file');
}

/** Of one attempt, as far as it has come. */
class Shown {
  readonly #name: 'stdout' | 'stderr';
  readonly #json: boolean;
  readonly #follows: boolean;
  // A letter may come in two pieces.
  readonly #text = new TextDecoder();
  readonly #clients = new Map<string, Client<typeof HarnessService>>();
  #offset = 0n;

  constructor({ flags }: Arguments) {
    this.#name = flags['stderr'] === true ? 'stderr' : 'stdout';
    this.#json = flags['json'] === true;
    this.#follows = flags['follow'] === true;
  }

  /** What is new at the place. */
  async read({ url, attempt }: Place, sessionId: string): Promise<GetSessionLogsResponse> {
    const offsets = { stdoutOffset: this.#offset, stderrOffset: this.#offset };
    const client = this.#clients.get(url) ?? clientOf(url);
    this.#clients.set(url, client);
    const log = await at(url, client.getSessionLogs({ sessionId, attempt, ...offsets }), '--node-url');
    this.#show(log);
    this.#offset = log[`${this.#name}Size`];
    return log;
  }

  /** A program that only complained would seem to have said nothing. */
  end(log: GetSessionLogsResponse): void {
    if (this.#json || this.#name === 'stderr' || log.stdoutSize > 0n || log.stderrSize === 0n) return;
    progress(`standard output is empty; --stderr shows ${log.stderrSize} bytes of standard error`);
  }

  #show(log: GetSessionLogsResponse): void {
    const bytes = log[this.#name];
    if (!this.#json) process.stdout.write(bytes);
    else if (bytes.length > 0 || !log.running || !this.#follows) {
      sayJson({ ...pieceOf(log, this.#name), text: this.#text.decode(bytes, { stream: log.running }) });
    }
  }
}

/**
 * To its end; a run that has not begun is waited for, on whatever node that will be. Services that are started again meanwhile
 * are waited for, too.
 */
async function follow(given: AskedAttempt, args: Arguments): Promise<void> {
  const shown = new Shown(args);
  let asked = given;
  let place = await placeOf(args, asked, true);
  let lastSeen = Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      const log = place && (await ifThere(shown.read(place, asked.sessionId), place));
      if (log?.running === false) return shown.end(log);
      if (place === undefined || log === undefined) place = await placeAgain(args, asked, place);
      else {
        // What has begun is followed, whatever comes behind it.
        asked = { ...asked, attempt: log.attempt };
        place = { ...place, attempt: log.attempt };
      }
      lastSeen = performance.now();
    } catch (error) {
      const { retryable } = asPolarError(error);
      if (!retryable || performance.now() - lastSeen > UNREACHABLE_MS) throw error;
    }
    await sleep(FOLLOW_MS);
  }
}

/** Undefined where there is no output yet. */
async function ifThere<T>(reading: Promise<T>, { isOver }: Place): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isOver || asPolarError(error).reason !== 'NOT_FOUND') throw error;
    return undefined;
  }
}

/** Who names the node may do so without a scheduler. */
async function placeAgain(
  args: Arguments,
  asked: AskedAttempt,
  before: Place | undefined,
): Promise<Place | undefined> {
  try {
    return await placeNow(args, asked, true);
  } catch (error) {
    if (textFlag(args, 'node-url') === undefined || asPolarError(error).reason === 'NOT_FOUND') throw error;
    return before;
  }
}

/** As JSON: what has come, and how far that is of all of it. */
const pieceOf = (log: GetSessionLogsResponse, name: 'stdout' | 'stderr') => ({
  ...{ attempt: log.attempt, running: log.running, stream: name, size_bytes: Number(log[`${name}Size`]) },
  ...(!log.running && { exit_code: log.exitCode }),
});

async function listFiles(
  client: Client<typeof HarnessService>,
  asked: AskedAttempt,
  json: boolean,
): Promise<void> {
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

async function writeFile(
  client: Client<typeof HarnessService>,
  asked: AskedAttempt,
  path: string,
): Promise<void> {
  const { content } = await client.getSessionArtifact({ ...asked, path });
  process.stdout.write(content);
}
