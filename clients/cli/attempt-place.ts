// Where the output of a session's attempt is, or will be.
import { type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { asPolarError, PolarError } from '../../services/common/errors.ts';
import { EXTERNAL } from '../../services/common/specs/catalogue.ts';
import type { Arguments } from './arguments.ts';
import { addressIn, at, meshTopologyOf, rolloutClient, rolloutUrl } from './mesh-clients.ts';

/** Sessions of a task that an error names. */
const NAMED_MAX = 8;

export interface AskedAttempt {
  readonly sessionId: string;
  /** 0: the last one. */
  readonly attempt: number;
}

export interface Place {
  /** Of its node. */
  readonly url: string;
  readonly attempt: number;
  /** Nothing more comes. */
  readonly isOver: boolean;
}

/** By what the command names, else by the scheduler, as `placeNow`. */
export async function placeOf(
  args: Arguments,
  asked: AskedAttempt,
  follows: boolean,
): Promise<Place | undefined> {
  const url = addressIn(args, 'node-url');
  if (url !== undefined) return { url, attempt: asked.attempt, isOver: false };
  return await placeNow(args, asked, follows);
}

/**
 * As the scheduler has it now; undefined where the attempt has no node yet. Who follows the last one waits for the next, where
 * that is to come. Throws NOT_FOUND where there will be no such attempt, and where it has no node or one that the topology has not.
 */
export async function placeNow(
  args: Arguments,
  asked: AskedAttempt,
  follows: boolean,
): Promise<Place | undefined> {
  const session = await sessionOf(rolloutUrl(args), asked.sessionId);
  if (session?.harness === EXTERNAL) throw elsewhere(asked);
  if (session === undefined || isToCome(session, asked, follows)) return undefined;
  const attempt = asked.attempt === 0 ? session.attempt : asked.attempt;
  if (attempt > session.attempt) {
    throw new PolarError('NOT_FOUND', `session ${asked.sessionId} has no attempt ${attempt}`);
  }
  const found = session.attempts.find((one) => one.attempt === attempt);
  const url =
    addressIn(args, 'node-url') ??
    addressOfNode(args, `no output of ${asked.sessionId}`, found?.nodeId ?? '');
  return { url, attempt, isOver: session.state === SessionState.ENDED || found?.endTime !== undefined };
}

/** Throws NOT_FOUND; where it is a task's id that was given, that says so. */
async function sessionOf(url: string, id: string): Promise<Session | undefined> {
  const rollout = rolloutClient(url);
  try {
    return (await at(url, rollout.getSession({ sessionId: id }))).session;
  } catch (error) {
    if (asPolarError(error).reason !== 'NOT_FOUND') throw error;
    const { sessions } = await rollout.listSessions({ taskId: id, pageSize: NAMED_MAX + 1 }).catch(() => {
      throw error;
    });
    const named = sessions.slice(0, NAMED_MAX).map(({ sessionId }) => sessionId);
    const more = sessions.length > NAMED_MAX ? ', …' : '';
    throw new PolarError(
      'NOT_FOUND',
      `${id} is a task: name one of its sessions, ${named.join(', ')}${more}`,
    );
  }
}

const elsewhere = ({ sessionId }: AskedAttempt): PolarError =>
  new PolarError(
    'NOT_FOUND',
    `no output of ${sessionId}: its harness runs elsewhere; its model calls: polar export ${sessionId} --calls`,
  );

function isToCome({ state, attempt }: Session, asked: AskedAttempt, follows: boolean): boolean {
  if (state === SessionState.ENDED) return false;
  if (asked.attempt > 0) return asked.attempt > attempt;
  return state === SessionState.QUEUED && (follows || attempt === 0);
}

/**
 * Where its LLM proxy listens, which asks the services beside it. Throws NOT_FOUND, which says what there is not without it,
 * where the topology has no such node.
 */
export function addressOfNode(args: Arguments, lacking: string, nodeId: string): string {
  const node = meshTopologyOf(args).gateway.nodes.find(({ id }) => id === nodeId);
  if (node !== undefined) return node.public_url;
  const advice = 'name the topology of its mesh with -c, as `polar up` shows it, or the node with --node-url';
  const elsewhere = `it ran on node ${nodeId}, which the topology here has not: ${advice}`;
  const why = nodeId === '' ? 'it has not run' : elsewhere;
  throw new PolarError('NOT_FOUND', `${lacking}: ${why}`);
}
