// How much a task spec holds, and what its free-form parts, which have no fields to check, hold: how deep they are, and
// nothing that protobuf or JSON cannot carry.
import type { DescMessage, JsonObject, Message } from '@bufbuild/protobuf';
import { type TaskSpec, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { FieldFault } from '../errors.ts';
import { isWithin, valuesIn } from '../json-values.ts';
import { valuesAt } from '../request-faults.ts';

/** Values of one task, or of all tasks of a batch; above: INVALID_TASK. A step of the scheduler takes microseconds for each. */
export const TASK_VALUES_MAX = 100_000;

/**
 * Levels of objects and lists in one of them; above: INVALID_TASK. Readers of protobuf stop at 100 messages in each other,
 * a level is up to three of them, and a spec goes some levels down in other messages.
 */
export const FREE_FORM_LEVELS_MAX = 30;

/** None: the spec can be copied, stored and shown. */
export function valueFaults(spec: TaskSpec): FieldFault[] {
  if (valuesOf(spec) > TASK_VALUES_MAX) {
    const description = `holds more than TASK_VALUES_MAX (${TASK_VALUES_MAX}) values: upload an archive`;
    return [{ field: '(task)', description }];
  }
  const limit = `FREE_FORM_LEVELS_MAX (${FREE_FORM_LEVELS_MAX})`;
  return freeForm(spec).flatMap(([field, part]) =>
    isWithin(part, FREE_FORM_LEVELS_MAX)
      ? oddIn(part, field)
      : [{ field, description: `has more than ${limit} levels of objects and lists` }],
  );
}

/**
 * Elements of its lists, such as files and steps, and entries of its maps and free-form parts, at every level; above
 * TASK_VALUES_MAX some of them.
 */
export const valuesOf = (spec: TaskSpec): number => countIn(TaskSpecSchema, spec);

function countIn(schema: DescMessage, message: Message): number {
  let count = 0;
  for (const field of schema.fields) {
    const several = field.fieldKind === 'list' || field.fieldKind === 'map';
    if (!several && field.message === undefined) continue;
    const values = valuesAt(message, field, '');
    if (several) count += values.length;
    if (field.message === undefined || count > TASK_VALUES_MAX) continue;
    for (const [, value] of values) {
      const free = field.message.typeName === 'google.protobuf.Struct';
      count += free
        ? valuesIn(value as JsonObject, Number.POSITIVE_INFINITY) - 1
        : countIn(field.message, value as Message);
    }
  }
  return count;
}

function freeForm({ metadata, harness, builder, evaluator }: TaskSpec): [field: string, part: JsonObject][] {
  const parts = {
    ...{ metadata, 'harness.settings': harness?.settings },
    ...{ 'builder.config': builder?.config, 'evaluator.config': evaluator?.config },
  };
  return Object.entries(parts).flatMap(([field, part]) => (part === undefined ? [] : [[field, part]]));
}

/** Where numbers are that JSON has none for, and texts that UTF-8 has none for. */
function oddIn(value: unknown, at: string): FieldFault[] {
  if (typeof value === 'string') return value.isWellFormed() ? [] : [noText(at)];
  if (typeof value === 'number') {
    return Number.isFinite(value) ? [] : [{ field: at, description: 'must be a finite number' }];
  }
  if (value === null || typeof value !== 'object') return [];
  if (Array.isArray(value)) return value.flatMap((one, i) => oddIn(one, `${at}[${i}]`));
  return Object.entries(value).flatMap(([key, one]) =>
    key.isWellFormed() ? oddIn(one, `${at}.${key}`) : [noText(`${at}.${key.toWellFormed()}`)],
  );
}

const noText = (field: string): FieldFault => ({
  field,
  description: 'must be text: half a surrogate pair is none',
});
