// What has ended and left memory, as the API shows it.
import { create } from '@bufbuild/protobuf';
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { ArchivedTask, Change } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { CallbackState } from '../../../gen/ts/polar/scheduler/v1/callback_state_pb.js';
import { type Task, TaskSchema } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import { harnessOf, sessionOf } from '../domain/session.ts';
import { announcedGroup, callbackOfGroup, sessionChange, taskChange } from '../domain/state.ts';
import { outlineOfRecord } from '../domain/task.ts';
import { type Archive, recordOf } from './archive.ts';

/** Throws NOT_FOUND. */
export async function archivedTaskOf(archive: Archive, taskId: string): Promise<ArchivedTask> {
  const task = await archive.task(taskId);
  if (task === undefined) throw new PolarError('NOT_FOUND', `there is no task ${taskId}`);
  return task;
}

/** The task as it was shown last. */
export function archivedView(archived: ArchivedTask): Task {
  const spec = outlineOfRecord(recordOf(archived));
  return { ...(archived.task ?? create(TaskSchema)), spec, harness: harnessOf(spec) };
}

/** Throws NOT_FOUND. */
export async function archivedSessionOf(archive: Archive, sessionId: string): Promise<Session> {
  const record = await archive.session(sessionId);
  if (record === undefined) throw new PolarError('NOT_FOUND', `there is no session ${sessionId}`);
  return sessionOf(record);
}

/**
 * The changes that bring a task back into the state; undefined where it is not there, or not with all its sessions: one
 * without a record would be one that waits, and would run. They may be several commits: a kill between them leaves a task
 * that is announced and not whole, which the archiver completes. The task itself is not there without its announcement.
 */
export async function archivedChanges(archive: Archive, taskId: string): Promise<Change[][] | undefined> {
  const archived = await archive.task(taskId);
  if (archived?.task === undefined) return undefined;
  const record = recordOf(archived);
  const { groupId, callbackState } = archived.task;
  const sessions = await archive.sessions(archived, 0, record.numSamples);
  if (sessions.length < record.numSamples) return undefined;
  const head = [taskChange(record)];
  // Before the announcement: once that is in the state, a callback that is not done would be told again.
  if (callbackState !== CallbackState.UNSPECIFIED) {
    head.push(callbackOfGroup(taskId, groupId, callbackState === CallbackState.DELIVERED));
  }
  head.push(announcedGroup(taskId, groupId));
  return [head, ...sessions.map((session) => [sessionChange(session)])];
}
