// A submitted task: its record, the digest that tells an equal replay, what it asks of a node.
import { create, type JsonValue, toBinary, toJson } from '@bufbuild/protobuf';
import type { BlobRef } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import { type TaskSpec, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type TaskRecord, TaskRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { sha256 } from '../../common/ids.ts';
import { filesOf, stepsOf } from '../../common/specs/runtime-spec.ts';
import { comparedOf, outlineOf } from '../../common/specs/task-spec.ts';

/** Equal for equal completed specs, in whatever order their maps came. */
export function specDigest(spec: TaskSpec): string {
  const outline = sorted(toJson(TaskSpecSchema, comparedOf(spec)));
  const files = (spec.runtime === undefined ? [] : stepsOf(spec.runtime)).map(filesOf);
  const tests = spec.evaluator?.files ?? [];
  // Without tests as before there were any: tasks that were stored then are equal to their replays.
  const lists = [...files, spec.harness?.skills ?? [], ...(tests.length > 0 ? [tests] : [])];
  const uploads = lists.map((list) =>
    list.map(({ target, mode, content }) => [target, mode, sha256(content)]),
  );
  return sha256(JSON.stringify([outline, uploads]));
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key] as JsonValue)]));
}

export interface TaskInit {
  readonly spec: TaskSpec;
  /** Where the spec's files lie, if they are not in the record. */
  readonly filesRef: BlobRef | undefined;
  readonly specSha256: string;
  readonly requestId: string;
  readonly sessionPrefix: string;
  readonly createMs: number;
}

export function taskRecord({ spec, filesRef, createMs, ...init }: TaskInit): TaskRecord {
  return create(TaskRecordSchema, {
    ...init,
    taskId: spec.taskId,
    createMs: BigInt(createMs),
    numSamples: spec.numSamples,
    ...(filesRef === undefined
      ? { spec: { case: 'inlineSpec', value: spec } }
      : { spec: { case: 'filesRef', value: filesRef }, outline: outlineOf(spec) }),
  });
}

/** The spec without file contents, as the scheduler keeps it. */
export function outlineOfRecord(record: TaskRecord): TaskSpec {
  if (record.outline !== undefined) return record.outline;
  if (record.spec.case === 'inlineSpec') return outlineOf(record.spec.value);
  throw new Error(`task ${record.taskId} has no spec in its record`);
}

/** What the record of a task takes in the log and in memory. */
export const recordBytes = (record: TaskRecord): number => toBinary(TaskRecordSchema, record).byteLength;

/** What a node must have: sessions of equal need wait in one queue. No part has a space. */
export function needOf(spec: TaskSpec): string {
  const { backend, image, gpus } = spec.runtime ?? { backend: '', image: '', gpus: 0 };
  return `${backend} ${image === 'host' ? '' : image}${gpus > 0 ? ` ${gpus}` : ''}`;
}

export interface NeedParts {
  readonly backend: string;
  readonly image: string;
  readonly gpus: number;
}

export function partsOfNeed(need: string): NeedParts {
  const [backend = '', image = '', gpus = '0'] = need.split(' ');
  return { backend, image, gpus: Number(gpus) };
}
