// The free-form parts of a task spec, which have no fields to check: how deep they are, and nothing in them that protobuf or
// JSON cannot carry.
import type { JsonObject } from '@bufbuild/protobuf';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { FieldFault } from '../errors.ts';
import { isWithin } from '../json-values.ts';

/**
 * Levels of objects and lists in one of them; above: INVALID_TASK. Readers of protobuf stop at 100 messages in each other,
 * a level is up to three of them, and a spec goes some levels down in other messages.
 */
export const FREE_FORM_LEVELS_MAX = 30;

/** None: the spec can be copied, stored and shown. */
export function freeFormFaults(spec: TaskSpec): FieldFault[] {
  const limit = `FREE_FORM_LEVELS_MAX (${FREE_FORM_LEVELS_MAX})`;
  return freeForm(spec).flatMap(([field, part]) =>
    isWithin(part, FREE_FORM_LEVELS_MAX)
      ? oddIn(part, field)
      : [{ field, description: `has more than ${limit} levels of objects and lists` }],
  );
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
