// The evaluator of a task file. What it names on the client's machine is sent in its place: the evaluator's does not have it.
import type { JsonObject, JsonValue, MessageInitShape } from '@bufbuild/protobuf';
import type { EvaluatorSpecSchema, UploadFileSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PLUGIN_PATH } from './strategies.ts';
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

/** What may be a file of the client's, by strategy: its text is sent. */
const TEXTS: ReadonlyMap<JsonValue | undefined, string> = new Map([
  ['rubric', 'rubric'],
  ['swebench_harness', 'instance'],
]);

function sentConfig(
  strategy: JsonValue | undefined,
  config: JsonObject,
  at: string,
  uploads: Uploads,
  files: Upload[],
): JsonObject {
  if (strategy === 'harbor' || PLUGIN_PATH.test(String(strategy))) {
    const { tests_dir: folder, ...rest } = config;
    if (typeof folder !== 'string') return config;
    files.push(...(uploads.folder(folder, `${at}.tests_dir`) ?? []));
    return rest;
  }
  const sent = withText(TEXTS.get(strategy) ?? '', config, at, uploads);
  const { outcome } = sent;
  if (strategy !== 'rubric' || !isObject(outcome) || !isObject(outcome['config'])) return sent;
  const below = sentConfig(outcome['strategy'], outcome['config'], `${at}.outcome.config`, uploads, files);
  return { ...sent, outcome: { ...outcome, config: below } };
}

function withText(key: string, config: JsonObject, at: string, uploads: Uploads): JsonObject {
  const { [`${key}_path`]: path, ...rest } = config;
  if (typeof path !== 'string' || key === '' || key in rest) return config;
  // One that cannot be read is told by its path alone.
  return { ...rest, [key]: uploads.text(path, `${at}.${key}_path`) ?? path };
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
