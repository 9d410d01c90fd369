// polar export SESSION --calls|--traces
import process from 'node:process';
import { pipeline } from 'node:stream/promises';
import { ExportKind } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { writeWhole } from '../../../services/common/whole-file.ts';
import {
  attemptFlag,
  type Command,
  TLS_FLAGS,
  TRAJECTORY_FLAGS,
  textFlag,
  UsageError,
} from '../arguments.ts';
import { at, trajectoryClient, trajectoryUrl } from '../mesh-clients.ts';
import { progress } from '../output/say.ts';
import { stopSignal } from '../stops.ts';

export const exportSession: Command = {
  name: 'export',
  summary: 'write the recorded calls or the traces of a session as JSON lines',
  operands: ['SESSION'],
  flags: {
    ...TLS_FLAGS,
    ...TRAJECTORY_FLAGS,
    calls: { type: 'boolean', help: 'recorded model calls' },
    traces: { type: 'boolean', help: 'built traces' },
    attempt: { type: 'string', value: 'N', help: 'this attempt instead of the one that counts' },
    out: { type: 'string', short: 'o', value: 'FILE', help: 'write there instead of to standard output (-)' },
  },
  examples: [
    'polar export s0123456789ab-0 --calls -o calls.jsonl',
    'polar export s0123456789ab-0 --traces -o traces.jsonl && python3 test/vectors/laws.py calls.jsonl traces.jsonl',
  ],
  async run(args) {
    const { calls, traces } = args.flags;
    if (calls === traces) throw new UsageError('one of --calls and --traces is needed');
    const attempt = attemptFlag(args);
    const kind = calls === true ? ExportKind.CALLS : ExportKind.TRACES;
    const url = trajectoryUrl(args);
    const client = trajectoryClient(url);
    const sessionId = args.operands[0] ?? '';
    const named = textFlag(args, 'out');
    const file = named === '-' ? undefined : named;
    // Asked for when it is read: a failure before would be nobody's.
    const open = (signal?: AbortSignal) =>
      client.exportSession({ sessionId, kind, attempt }, { ...(signal && { signal }) });
    const count = await at(url, writeLines(open, file), '--trajectory-url');
    const what = calls === true ? 'calls' : 'traces';
    const none = `session ${sessionId} has no ${what}; \`polar status ${sessionId}\` says how it went`;
    if (count === 0) progress(none);
    else if (file !== undefined) progress(`${what} in ${file}: ${count}`);
    return 0;
  },
};

/** Resolves to how many there were. */
async function writeLines(
  open: (signal?: AbortSignal) => AsyncIterable<{ readonly line: string }>,
  file?: string,
): Promise<number> {
  let count = 0;
  // Of a file that is half written nothing is left; standard output is a reader's, who has what came.
  const stop = file === undefined ? undefined : stopSignal();
  const lines = (async function* () {
    for await (const { line } of open(stop)) {
      count++;
      yield `${line}\n`;
    }
  })();
  // Standard output stays open: it is not ours to end.
  if (file === undefined) await pipeline(lines, process.stdout, { end: false });
  else
    await writeWhole(file, lines, stop).catch((error) => {
      stop?.throwIfAborted();
      throw error;
    });
  return count;
}
