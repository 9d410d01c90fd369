// The one place that declares streams, durable consumers and buckets, with their limits.
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from 'nats';
import { subjectToken } from '../ids.ts';
import { WORK_ACK_WAIT_MS } from '../limits.ts';
import { subjects, type WorkKind } from './subjects.ts';

// Reserved by the server when a stream is made: its store must hold the sum, 22 GiB.
const GIB = 1024 ** 3;
const DAY_MS = 24 * 3600 * 1000;

type StreamSpec = Partial<StreamConfig> & Pick<StreamConfig, 'name' | 'subjects'>;

/** `discard: new` everywhere: a full store is typed backpressure, never a silent loss of what was acknowledged. */
const stream = (spec: StreamSpec): StreamSpec => ({
  storage: StorageType.File,
  retention: RetentionPolicy.Limits,
  discard: DiscardPolicy.New,
  ...spec,
});

export const STREAMS = {
  state: stream({ name: 'POLAR_STATE', subjects: [subjects.state], max_bytes: GIB, allow_direct: true }),
  snapshot: stream({
    name: 'POLAR_SNAPSHOT',
    subjects: ['polar.v1.snapshot.>'],
    max_msgs_per_subject: 1,
    allow_direct: true,
  }),
  // What has ended, for people and replays to ask for: the oldest goes first. Its trajectories lie elsewhere.
  archive: stream({
    name: 'POLAR_ARCHIVE',
    subjects: ['polar.v1.archive.sessions.>', 'polar.v1.archive.request.*'],
    discard: DiscardPolicy.Old,
    max_msgs_per_subject: 1,
    max_age: nanos(30 * DAY_MS),
    max_bytes: GIB,
    allow_direct: true,
  }),
  // A stream of their own: its sequence is the order of a list.
  archivedTasks: stream({
    name: 'POLAR_ARCHIVE_TASKS',
    subjects: [subjects.archivedTasks],
    discard: DiscardPolicy.Old,
    max_msgs_per_subject: 1,
    max_age: nanos(30 * DAY_MS),
    max_bytes: GIB / 4,
    allow_direct: true,
  }),
  // Work and fact streams age out: a server may keep acknowledged messages after a kill, and they would count.
  work: stream({
    name: 'POLAR_WORK',
    subjects: ['polar.v1.work.>'],
    retention: RetentionPolicy.Workqueue,
    max_age: nanos(DAY_MS),
    max_msgs: 1_000_000,
  }),
  facts: stream({
    name: 'POLAR_FACTS',
    subjects: ['polar.v1.fact.>'],
    retention: RetentionPolicy.Workqueue,
    max_age: nanos(7 * DAY_MS),
    max_bytes: GIB / 2,
  }),
  completions: stream({
    name: 'POLAR_COMPLETIONS',
    subjects: ['polar.v1.completion.>'],
    max_age: nanos(30 * DAY_MS),
    max_bytes: 8 * GIB,
    max_consumers: 10_000,
    allow_direct: true,
  }),
  trajectories: stream({
    name: 'POLAR_TRAJECTORIES',
    subjects: ['polar.v1.trajectory.>'],
    max_bytes: 2 * GIB,
    max_consumers: 1_000,
    allow_direct: true,
  }),
  blobs: stream({
    name: 'POLAR_BLOBS',
    subjects: ['polar.v1.blob.>'],
    max_msgs_per_subject: 1,
    max_bytes: 8 * GIB,
    allow_direct: true,
  }),
  // Made of what lies in the two above, and made anew of it where it is missing: the oldest goes first.
  packs: stream({
    name: 'POLAR_PACKS',
    subjects: [subjects.packs],
    discard: DiscardPolicy.Old,
    max_msgs_per_subject: 1,
    max_age: nanos(DAY_MS),
    max_bytes: GIB,
    allow_direct: true,
  }),
  dead: stream({
    name: 'POLAR_DEAD',
    subjects: ['polar.v1.dead.>'],
    max_age: nanos(30 * DAY_MS),
    max_bytes: GIB / 4,
  }),
} as const;

/** Key-value buckets; every one keeps only the last value of a key. */
export const BUCKETS = {
  /** Without an age: a lease is dead when it stands still by an observer's clock. */
  lease: { name: 'polar_lease' },
  cursors: { name: 'polar_cursors' },
  policy: { name: 'polar_policy' },
  /** Credentials end by their own expiry; the age only clears what was left behind. Marks of deleted ones end before it. */
  capabilities: { name: 'polar_capabilities', ttlMs: 7 * DAY_MS, marksEnd: true },
} as const;

/** Where a bucket's key is stored. */
export const subjectOfKey = (bucket: keyof typeof BUCKETS, key: string): string =>
  `$KV.${BUCKETS[bucket].name}.${key}`;

/** In memory: NATS would write a file anew for what was given out and for what is done, most of what a session costs it. */
const pull = (spec: Partial<ConsumerConfig>): Partial<ConsumerConfig> => ({
  mem_storage: true,
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(WORK_ACK_WAIT_MS),
  max_deliver: -1,
  ...spec,
});

export const CONSUMERS = {
  schedulerFacts: pull({ durable_name: 'scheduler', max_ack_pending: 5_000 }),
  /** Shared by all reconstructors. What was announced before there was one goes without packs. */
  packs: pull({ durable_name: 'packs', deliver_policy: DeliverPolicy.New, max_ack_pending: 1_000 }),
  /** One for each kind and node; `build` is shared by all reconstructors. */
  work: (kind: WorkKind, node: string, slots: number): Partial<ConsumerConfig> =>
    pull({
      durable_name: kind === 'build' ? 'build' : `${kind}-${subjectToken(node)}`,
      filter_subject: subjects.work(kind, node),
      max_ack_pending: kind === 'build' ? 1_000 : Math.max(slots * 2, 16),
    }),
} as const;
