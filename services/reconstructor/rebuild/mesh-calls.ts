// The recorded calls of sessions that a mesh has stored, fetched one session after another.
import type { Client } from '@connectrpc/connect';
import {
  ExportKind,
  TrajectoryService,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createPlainClient } from '../../common/client.ts';
import type { CertificateFiles } from '../../common/config/certificates.ts';
import { asPolarError, PolarError, type Reason } from '../../common/errors.ts';
import { CertificateStore } from '../../common/tls/certificates.ts';
import { CallLog } from '../domain/call-log.ts';
import type { CallsSource, LineFault, SessionCalls } from './read-calls.ts';

/** Which sessions are fetched, and from where. */
export interface StoredSessions {
  /** TrajectoryService. */
  readonly url: string;
  /** Access token. */
  readonly token?: string;
  /** For https://. */
  readonly certificates?: CertificateFiles;
  readonly sessions: readonly StoredSession[];
}

interface StoredSession {
  readonly session_id: string;
  readonly attempt: number;
  /** Calls that were recorded when its trajectory was built; 0 where none was. */
  readonly calls: number;
}

/** What is wrong with one session and says nothing of the others. */
const OF_ONE: readonly Reason[] = ['NOT_FOUND', 'RECORDS_MISSING', 'RECORDS_INVALID', 'BLOB_MISSING'];

/** A session that is lost is told of; the only one that was asked for throws. So does a mesh that does not answer. */
export function callsOfMesh(
  { url, token, certificates, sessions }: StoredSessions,
  signal: AbortSignal,
): CallsSource {
  const tls = certificates && new CertificateStore(certificates, String);
  const client = createPlainClient(TrajectoryService, url, { token, tls });
  const faults: LineFault[] = [];
  return {
    faults,
    count: sessions.length,
    sessions: (async function* (): AsyncGenerator<SessionCalls> {
      for (const session of sessions) {
        const sessionId = session.session_id;
        try {
          yield { sessionId, log: await logOf(client, session, faults, signal) };
        } catch (thrown) {
          const error = located(asPolarError(thrown), url);
          if (sessions.length === 1 || !OF_ONE.includes(error.reason)) throw error;
          yield { sessionId, lost: error };
        }
      }
    })(),
  };
}

const located = (error: PolarError, url: string): PolarError =>
  error.reason === 'NODE_LOST'
    ? new PolarError('MESH_UNREACHABLE', `nobody answers at ${url} (${error.message})`, { cause: error })
    : error;

async function logOf(
  client: Client<typeof TrajectoryService>,
  { session_id: sessionId, attempt, calls }: StoredSession,
  faults: LineFault[],
  signal: AbortSignal,
): Promise<CallLog> {
  const log = new CallLog();
  let line = 0;
  const asked = { sessionId, attempt, kind: ExportKind.CALLS };
  for await (const { line: text } of client.exportSession(asked, { signal })) {
    line++;
    const fault = log.add(JSON.parse(text) as Record<string, unknown>);
    if (fault !== undefined) faults.push({ line, sessionId, ...fault });
  }
  if (line >= calls) return log;
  throw new PolarError(
    'RECORDS_MISSING',
    `${calls - line} of the ${calls} recorded calls of session ${sessionId} are gone: what every consumer has acknowledged is removed after retention.acked_days`,
  );
}
