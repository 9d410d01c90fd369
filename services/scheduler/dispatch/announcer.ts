// Announces a group when the last of its sessions has ended: published create-once, then committed.
import { toBinary } from '@bufbuild/protobuf';
import { GroupReadySchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { Logger } from '../../common/logger.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { publish } from '../../common/nats/publish.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { groupReady } from '../domain/group.ts';
import { endedRound } from '../domain/rounds.ts';
import { groupIdOf } from '../domain/session.ts';
import { announcedGroup, type TaskState } from '../domain/state.ts';
import * as events from '../events.ts';
import type { Journal } from '../journal/journal.ts';
import { unixMs } from './clock.ts';
import type { Effects } from './effects.ts';

export interface AnnouncerOptions {
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly journal: Journal;
  readonly effects: Effects;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export class Announcer {
  readonly #options: AnnouncerOptions;
  /** Subjects of groups that are on their way. */
  readonly #announcing = new Set<string>();

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /**
   * To be called when a session of the task has ended or was carried over, when a group of it was announced, durably, and at a
   * take-over.
   */
  check(task: TaskState): void {
    const round = endedRound(task);
    if (round === undefined) return;
    const { bus, blobs, journal, effects, log, signal } = this.#options;
    const { taskId } = task.record;
    const groupId = groupIdOf(round);
    const subject = subjects.trajectory(taskId, groupId);
    // Of a group that has ended, more ends come with those that were carried over.
    if (this.#announcing.has(subject)) return;
    this.#announcing.add(subject);
    // Made now: once it is announced, the state lets go of what only the announcement needs.
    const bytes = toBinary(GroupReadySchema, groupReady(task, unixMs(), round));
    effects.start({
      wanted: () => task.announcedRounds <= round,
      run: async () => {
        await publish(bus, blobs, subject, bytes, { createOnce: true, signal });
        await journal.propose(announcedGroup(taskId, groupId));
        this.#announcing.delete(subject);
        events.groupAnnounced(log, task);
      },
    });
  }
}
