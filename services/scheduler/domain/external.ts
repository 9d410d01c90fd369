// Sessions whose harness runs elsewhere: who asks for one is given an attempt that runs at once. It takes a node's LLM
// proxy, and no slot of the node. How it ends: external-end.ts.
import { create } from '@bufbuild/protobuf';
import { type Opened, OpenedSchema } from '../../../gen/ts/polar/event/v1/external_session_pb.js';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { PolarError } from '../../common/errors.ts';
import { sha256 } from '../../common/ids.ts';
import { REQUEST_ID_CHARS_MAX } from '../../common/limits.ts';
import { overError } from './external-end.ts';
import { loadOf, type NodeState } from './nodes.ts';
import { dispatched, isOpen, moved, type Place, SessionState, sessionOf } from './session.ts';

/** Open sessions of one node; above: NO_NODE. */
export const OPEN_SESSIONS_PER_NODE_MAX = 512;
/** Shorter ones can be guessed, and so can the key that follows from it. */
const REQUEST_ID_CHARS_MIN = 32;

/** What is wrong with the request_id of who opens a session. */
export function requestIdFault(requestId: string): string | undefined {
  const { length } = requestId;
  if (length === 0 || (length >= REQUEST_ID_CHARS_MIN && length <= REQUEST_ID_CHARS_MAX)) return undefined;
  return `must be ${REQUEST_ID_CHARS_MIN} to ${REQUEST_ID_CHARS_MAX} characters that nobody can guess, or empty`;
}

/**
 * The key of an attempt: the same again for a replay, and stored nowhere. Who knows no request_id cannot tell it, as that is
 * stored as another digest.
 */
export function keyFor(
  requestId: string,
  { sessionId, attempt }: { sessionId: string; attempt: number },
): string {
  const digest = sha256(`key of ${sessionId}.${attempt} for ${requestId}`);
  return Buffer.from(digest, 'hex').toString('base64url');
}

/** Whether the request has the session, and nobody has closed it. */
export const isOpenBy = (record: SessionRecord, requestId: string): boolean =>
  isOpen(record) && record.closed === undefined && record.opened?.requestSha256 === sha256(requestId);

/** Of a task's sessions the one that a request has opened, or is to open. Throws SESSION_CLOSED, NO_SESSION_WAITS. */
export function sessionFor(records: readonly SessionRecord[], requestId: string): SessionRecord {
  const requestSha256 = sha256(requestId);
  const its = records.find(({ opened }) => opened?.requestSha256 === requestSha256);
  if (its !== undefined) {
    if (isOpenBy(its, requestId)) return its;
    throw overError(its);
  }
  const waiting = records.find((record) => sessionOf(record).state === SessionState.QUEUED);
  if (waiting !== undefined) return waiting;
  const open = records.filter(isOpen).length;
  const message = `none of its ${records.length} sessions waits to be opened, ${open} are open: submit another task`;
  throw new PolarError('NO_SESSION_WAITS', message);
}

/** QUEUED → RUNNING: the next attempt, which its caller has from now on. */
export function opened(
  record: SessionRecord,
  place: Place,
  { requestId, leaseMs }: OpenRequest,
  nowMs: number,
): SessionRecord {
  const begun = moved(dispatched(record, place, nowMs), SessionState.RUNNING, nowMs, {});
  return { ...begun, opened: openedBy(requestId, leaseMs, begun) };
}

export interface OpenRequest {
  readonly requestId: string;
  /** 0: it has none. */
  readonly leaseMs: number;
}

function openedBy(requestId: string, leaseMs: number, record: SessionRecord): Opened {
  return create(OpenedSchema, {
    leaseMs: BigInt(leaseMs),
    requestSha256: sha256(requestId),
    keySha256: sha256(keyFor(requestId, sessionOf(record))),
  });
}

/** Where one more may be opened: on the node with the fewest. Throws NO_NODE. */
export function placeFor(
  open: readonly NodeState[],
  isFull: (node: NodeState) => boolean,
): { readonly node: NodeState; readonly bootId: string } {
  // One of an older version does not tell.
  const told = open.filter(({ heartbeat }) => (heartbeat?.proxyUrl ?? '') !== '');
  const [node] = told
    .filter((one) => one.open.size < OPEN_SESSIONS_PER_NODE_MAX && !isFull(one))
    .sort((a, b) => a.open.size - b.open.size || loadOf(a) - loadOf(b));
  if (node?.heartbeat !== undefined) return { node, bootId: node.heartbeat.bootId };
  const limits = `OPEN_SESSIONS_PER_NODE_MAX (${OPEN_SESSIONS_PER_NODE_MAX}), or max_sessions of its engine`;
  const why =
    told.length === 0
      ? 'no node takes sessions that says where its LLM proxy is'
      : `every node has ${limits}`;
  throw new PolarError('NO_NODE', why);
}

/** When its time is over, as far as that is known; Unix time in milliseconds. */
export const expireMs = (record: SessionRecord, budgetMs: number): number =>
  Number(record.stateMs) + budgetMs;
