// An evaluator without its task: as it is given to grade again what has ended.
import { dirname, resolve } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { type Duration, durationFromMs } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import {
  type EvaluatorSpec,
  EvaluatorSpecSchema,
  TaskSpecSchema,
} from '../../../gen/ts/polar/common/v1/task_pb.js';
import { checkStrict, faulty, parseStrict, readText } from '../config/faults.ts';
import type { FieldFault } from '../errors.ts';
import { evaluatorOf } from './evaluator-file.ts';
import { evaluatorSchema } from './task-file.ts';
import { readTaskSpec } from './task-spec.ts';
import { Uploads } from './uploads.ts';

/** All that a task needs beside it; none of it can have a fault. */
const TASK = {
  ...{ taskId: 'task', instruction: 'task' },
  harness: { name: 'shell', modelName: 'model', command: { command: 'true' } },
};

/** Its faults as a task's at submit, and the budget of a task with this evaluator that sets none. */
export function readEvaluator(
  evaluator: EvaluatorSpec,
  prepare?: Duration,
): { readonly budget: Duration; readonly faults: readonly FieldFault[] } {
  const task = create(TaskSpecSchema, { ...TASK, evaluator, budgets: { ...(prepare && { prepare }) } });
  const { spec, faults } = readTaskSpec(task);
  return { budget: spec.budgets?.evaluate ?? durationFromMs(0), faults };
}

/** That of a task file, or of a file with this part alone. Throws INVALID_TASK with every fault. */
export function readEvaluatorFile(file: string): EvaluatorSpec {
  const whole = parseStrict(z.looseObject({}), readText(file, 'INVALID_TASK'), file, 'INVALID_TASK');
  const given = checkStrict(evaluatorSchema, whole['evaluator'] ?? whole, file, 'INVALID_TASK');
  const uploads = new Uploads(dirname(resolve(file)));
  const spec = create(EvaluatorSpecSchema, evaluatorOf(given, uploads));
  const faults = [...uploads.faults, ...readEvaluator(spec).faults];
  if (faults.length > 0) throw faulty('INVALID_TASK', file, faults);
  return spec;
}
