// polar spans SESSION|TASK
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { ExportKind } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { EXIT } from '../../../services/common/exit-codes.ts';
import {
  type Arguments,
  type Command,
  TRAJECTORY_FLAGS,
  textFlag,
  URL_FLAGS,
  UsageError,
} from '../arguments.ts';
import { sessionsOf } from '../audit/selection.ts';
import { environment } from '../config.ts';
import { at, rolloutUrl, trajectoryClient, trajectoryUrl } from '../mesh-clients.ts';
import { versionNumber } from '../output/help.ts';
import { complain, progress, sayJson } from '../output/say.ts';
import type { CallSummary } from '../spans/call-span.ts';
import { Collector, headersIn } from '../spans/collector.ts';
import { exportRequest, type Span } from '../spans/otlp.ts';
import { sessionSpans } from '../spans/session-spans.ts';

export const spans: Command = {
  name: 'spans',
  summary: 'write what ended sessions did, and when, as OpenTelemetry spans',
  operands: ['TASK-OR-SESSION'],
  flags: {
    ...URL_FLAGS,
    ...TRAJECTORY_FLAGS,
    'otlp-url': {
      type: 'string',
      value: 'URL',
      help: 'send them to this collector, such as http://127.0.0.1:4318, with the headers of $OTEL_EXPORTER_OTLP_HEADERS; default: to standard output, a line of OTLP JSON each session',
    },
  },
  examples: [
    'polar spans calculator --otlp-url http://127.0.0.1:4318',
    'polar spans s0123456789ab-0 > spans.jsonl',
  ],
  async run(args) {
    const collector = collectorOf(args);
    const [id = ''] = args.operands;
    const sessions = await at(rolloutUrl(args), sessionsOf(rolloutUrl(args), id));
    const ended = sessions.filter(({ endTime }) => endTime !== undefined);
    for (const session of ended) {
      const made = await spansOf(trajectoryUrl(args), session);
      if (collector === undefined) sayJson(exportRequest(made, versionNumber()));
      else await collector.add(made);
    }
    await collector?.flush();
    const left = sessions.length - ended.length;
    if (left > 0) progress(`${left} of ${sessions.length} sessions have not ended: left out`);
    if (collector === undefined) return EXIT.ok;
    progress(`spans sent: ${collector.sent}, of ${ended.length} sessions`);
    if (collector.rejected === 0) return EXIT.ok;
    complain(`the collector rejected ${collector.rejected} spans`);
    return EXIT.failed;
  },
};

function collectorOf(args: Arguments): Collector | undefined {
  const url = textFlag(args, 'otlp-url');
  if (url === undefined) return undefined;
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw new UsageError(`--otlp-url must be like http://HOST:4318, not ${JSON.stringify(url)}`);
  }
  return new Collector(url, headersIn(environment.otlpHeaders ?? ''), versionNumber());
}

/** Calls that retention has taken are left out. */
async function spansOf(url: string, session: Session): Promise<Span[]> {
  const { sessionId, attempts } = session;
  const calls = new Map<number, CallSummary[]>();
  for (const { attempt } of attempts) {
    const asked = { sessionId, attempt, kind: ExportKind.SUMMARIES };
    const lines = at(url, Array.fromAsync(trajectoryClient(url).exportSession(asked)), '--trajectory-url');
    const summaries = (await lines).map(({ line }) => JSON.parse(line) as CallSummary);
    calls.set(attempt, summaries);
  }
  return sessionSpans(session, calls);
}
