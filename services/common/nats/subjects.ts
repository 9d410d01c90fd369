// Every subject of the mesh. The streams that hold them are in streams.ts.
import { subjectToken } from '../ids.ts';

export type WorkKind = 'prepare' | 'run' | 'close' | 'build' | 'evaluate';
export type FactKind = 'ready' | 'installing' | 'installed' | 'ran' | 'built' | 'evaluated' | 'failed';

const ROOT = 'polar.v1';

export const subjects = {
  state: `${ROOT}.state.log`,
  snapshot: `${ROOT}.snapshot.manifest`,
  /** An ended task. */
  archivedTask: (task: string): string => `${ROOT}.archive.task.${subjectToken(task)}`,
  archivedTasks: `${ROOT}.archive.task.*`,
  /** Ended sessions, by the prefix of their ids. */
  archivedSessions: (prefix: string, page: number): string =>
    `${ROOT}.archive.sessions.${subjectToken(prefix)}.${page}`,
  /** The id of the ended task that came with a request_id of its own. */
  archivedRequest: (sha256: string): string => `${ROOT}.archive.request.${sha256}`,
  /** Work for one node; `build` belongs to no node. */
  work: (kind: WorkKind, node: string): string =>
    kind === 'build' ? `${ROOT}.work.build` : `${ROOT}.work.${kind}.${subjectToken(node)}`,
  fact: (kind: FactKind, node: string): string => `${ROOT}.fact.${kind}.${subjectToken(node)}`,
  completion: (session: string, attempt: number): string =>
    `${ROOT}.completion.${subjectToken(session)}.${attempt}`,
  trajectory: (task: string, group: string): string =>
    `${ROOT}.trajectory.${subjectToken(task)}.${subjectToken(group)}`,
  trajectoriesOf: (task: string): string =>
    task === '' ? `${ROOT}.trajectory.>` : `${ROOT}.trajectory.${subjectToken(task)}.>`,
  /** Beside the messages of `trajectory`; see packSubjectOf. */
  packs: `${ROOT}.pack.>`,
  blobChunk: (sha256: string, index: number): string => `${ROOT}.blob.${sha256}.${index}`,
  blobManifest: (sha256: string): string => `${ROOT}.blob.${sha256}.manifest`,
  /** All messages of a blob. */
  blobParts: (sha256: string): string => `${ROOT}.blob.${sha256}.*`,
  dead: (stream: string): string => `${ROOT}.dead.${stream}`,
  /** Not stored. */
  heartbeat: (node: string): string => `${ROOT}.hb.${subjectToken(node)}`,
  anyHeartbeat: `${ROOT}.hb.*`,
  /** How the engines of a node bear what they have; not stored. */
  pressure: (node: string): string => `${ROOT}.pressure.${subjectToken(node)}`,
  anyPressure: `${ROOT}.pressure.*`,
  /** What LLM proxies say of themselves to each other. */
  policyHeartbeat: `${ROOT}.policy.hb`,
  control: (node: string): string => `${ROOT}.ctl.${subjectToken(node)}`,
} as const;

/** The pack of a group, by the subject of its message. */
export const packSubjectOf = (trajectory: string): string =>
  `${ROOT}.pack${trajectory.slice(`${ROOT}.trajectory`.length)}`;
