// The evaluator of a task file. What it names on the client's machine is sent in its place: the evaluator's does not have it.
import type { JsonObject, JsonValue, MessageInitShape } from '@bufbuild/protobuf';
import type { EvaluatorSpecSchema, UploadFileSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { TaskFile } from './task-file.ts';
import type { Uploads } from './uploads.ts';

type EvaluatorFile = NonNullable<TaskFile['evaluator']>;
type Upload = MessageInitShape<typeof UploadFileSchema>;

const CONFIG = 'evaluator.config';

export function evaluatorOf(
  { strategy, config, env }: EvaluatorFile,
  uploads: Uploads,
): MessageInitShape<typeof EvaluatorSpecSchema> {
  const files: Upload[] = [];
  return { strategy, config: sentConfig(strategy, config as JsonObject, CONFIG, uploads, files), env, files };
}

/** Where the files of an evaluator come from. */
export const testsDirField = ({ strategy }: EvaluatorFile): string =>
  `${strategy === 'rubric' ? `${CONFIG}.outcome.config` : CONFIG}.tests_dir`;

function sentConfig(
  strategy: JsonValue | undefined,
  config: JsonObject,
  at: string,
  uploads: Uploads,
  files: Upload[],
): JsonObject {
  if (strategy === 'harbor') {
    const { tests_dir: folder, ...rest } = config;
    if (typeof folder !== 'string') return config;
    files.push(...(uploads.folder(folder, `${at}.tests_dir`) ?? []));
    return rest;
  }
  return strategy === 'rubric' ? sentRubric(config, at, uploads, files) : config;
}

function sentRubric(config: JsonObject, at: string, uploads: Uploads, files: Upload[]): JsonObject {
  const { rubric_path: path, ...rest } = config;
  const sent = typeof path === 'string' && !('rubric' in rest) ? rest : config;
  // One that cannot be read is told by its path alone.
  if (sent === rest) rest['rubric'] = uploads.text(path as string, `${at}.rubric_path`) ?? (path as string);
  const { outcome } = sent;
  if (!isObject(outcome) || !isObject(outcome['config'])) return sent;
  const below = sentConfig(outcome['strategy'], outcome['config'], `${at}.outcome.config`, uploads, files);
  return { ...sent, outcome: { ...outcome, config: below } };
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
