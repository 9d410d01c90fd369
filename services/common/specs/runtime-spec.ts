// The sandbox of a TaskSpec: defaults and faults.
import { durationMs } from '@bufbuild/protobuf/wkt';
import type {
  ExecStep,
  PrepareStep,
  RuntimeSpec,
  UploadFile,
} from '../../../gen/ts/polar/common/v1/task_pb.js';
import { UPLOAD_FILES_MAX } from '../limits.ts';
import { backendFault } from './backend-names.ts';
import { DEFAULT_WORKDIR, unofferedBy } from './catalogue.ts';
import { checkNetwork, completeNetwork, rulesOf } from './egress.ts';
import type { Faults } from './faults-of.ts';

const IMAGE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** Registry, path, tag and digest, of which the engine checks more. */
const IMAGE_REFERENCE = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,511}$/;
const FILE_MODE = 0o644;
const FILE_MODE_MAX = 0o7777;
const STEP_TRIES_MAX = 10;
/** Longest pause between two tries. */
export const STEP_BACKOFF_MS_MAX = 60_000;

/** Fills in what is unset; changes `runtime` itself. */
export function completeRuntime(runtime: RuntimeSpec): void {
  if (runtime.workdir === '') runtime.workdir = DEFAULT_WORKDIR;
  if (runtime.network !== undefined) completeNetwork(runtime.network);
  for (const { step } of stepsOf(runtime)) {
    if (step.case === 'exec') completeExec(step.value);
    if (step.case === 'uploadFile') completeFile(step.value);
    if (step.case === 'uploadDir') step.value.files.forEach(completeFile);
  }
}

/** Fills in what is unset; changes `step` itself. */
export function completeExec(step: ExecStep): void {
  if (step.maxAttempts === 0) step.maxAttempts = 1;
}

/** Fills in what is unset; changes `file` itself. */
export function completeFile(file: UploadFile): void {
  if (file.mode === 0) file.mode = FILE_MODE;
}

/** All steps, those for the evaluator's sandbox too. */
export const stepsOf = (runtime: RuntimeSpec): PrepareStep[] => [
  ...runtime.prepare,
  ...(runtime.evalPrepare?.steps ?? []),
];

/** The files that a step carries. */
export function filesOf({ step }: PrepareStep): UploadFile[] {
  if (step.case === 'uploadFile') return [step.value];
  return step.case === 'uploadDir' ? step.value.files : [];
}

export function checkRuntime(runtime: RuntimeSpec, field: string, faults: Faults): void {
  const { backend, image, workdir, cpus } = runtime;
  const fault = backend === '' ? undefined : backendFault(backend);
  faults.require(fault === undefined, `${field}.backend`, fault ?? '');
  checkImage(backend, image, `${field}.image`, faults);
  if (runtime.network !== undefined) checkNetwork(runtime.network, `${field}.network`, faults);
  const { storageMb, network } = runtime;
  for (const missing of unofferedBy(backend, { storageMb, egress: rulesOf(network) })) {
    faults.require(false, `${field}.${missing.field}`, missing.description);
  }
  faults.absolutePath(workdir, `${field}.workdir`);
  faults.environment(runtime.env, `${field}.env`);
  faults.require(Number.isFinite(cpus) && cpus >= 0, `${field}.cpus`, 'must be 0 (no limit) or above');
  checkSteps(runtime.prepare, `${field}.prepare`, faults);
  checkSteps(runtime.evalPrepare?.steps ?? [], `${field}.eval_prepare.steps`, faults);
}

function checkImage(backend: string, image: string, field: string, faults: Faults): void {
  if (backend === 'process') {
    faults.require(image === '', field, 'the process runtime has no images: leave it out');
  } else if (image !== '') {
    const [form, what] =
      backend === 'bubblewrap'
        ? [IMAGE_NAME, "host or a folder's name under the node's images folder"]
        : [IMAGE_REFERENCE, 'the name of an image'];
    faults.require(form.test(image), field, `must be ${what}`);
  }
}

function checkSteps(steps: readonly PrepareStep[], field: string, faults: Faults): void {
  for (const [i, { step }] of steps.entries()) {
    const at = `${field}[${i}]`;
    switch (step.case) {
      case 'exec':
        checkExec(step.value, `${at}.exec`, faults);
        faults.argument(step.value.command, `${at}.exec.command`);
        break;
      case 'uploadFile':
        faults.absolutePath(step.value.target, `${at}.upload_file.target`);
        checkMode(step.value, `${at}.upload_file`, faults);
        break;
      case 'uploadDir':
        faults.absolutePath(step.value.target, `${at}.upload_dir.target`);
        checkFiles(step.value.files, `${at}.upload_dir.files`, faults);
        break;
      default:
        faults.require(false, at, 'must be one of exec, upload_file, upload_dir');
    }
  }
}

/** Of one folder. */
export function checkFiles(files: readonly UploadFile[], field: string, faults: Faults): void {
  const limit = `UPLOAD_FILES_MAX (${UPLOAD_FILES_MAX})`;
  const many = `are ${files.length}, at most ${limit}: upload an archive`;
  if (!faults.require(files.length <= UPLOAD_FILES_MAX, field, many)) return;
  for (const [i, file] of files.entries()) {
    faults.relativePath(file.target, `${field}[${i}].target`);
    checkMode(file, `${field}[${i}]`, faults);
  }
}

export function checkExec(step: ExecStep, field: string, faults: Faults): void {
  faults.text(step.command, `${field}.command`);
  if (step.cwd !== '') faults.absolutePath(step.cwd, `${field}.cwd`);
  faults.environment(step.env, `${field}.env`);
  faults.range(step.maxAttempts, 1, STEP_TRIES_MAX, `${field}.max_attempts`);
  const backoffMs = step.retryBackoff === undefined ? 0 : durationMs(step.retryBackoff);
  faults.range(backoffMs / 1000, 0, STEP_BACKOFF_MS_MAX / 1000, `${field}.retry_backoff`);
}

function checkMode(file: UploadFile, field: string, faults: Faults): void {
  faults.require(file.mode <= FILE_MODE_MAX, `${field}.mode`, 'must be at most 07777');
}
