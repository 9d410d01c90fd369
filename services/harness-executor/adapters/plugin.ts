// Adapters that a task names by path: modules below the folder that the operator chose, loaded on the node.
import { closeSync, openSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { create } from '@bufbuild/protobuf';
import { z } from 'zod';
import { FailureSchema } from '../../../gen/ts/polar/common/v1/failure_pb.js';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { abortable, Deadline } from '../../common/clock.ts';
import { checkStrict } from '../../common/config/faults.ts';
import { asPolarError, Boundary, PolarError } from '../../common/errors.ts';
import { FAILURE_MESSAGE_CHARS_MAX } from '../../common/limits.ts';
import { isShortage } from '../../common/shortage.ts';
import { HARNESSES } from '../../common/specs/catalogue.ts';
import { anyArgument, ENV_NAME } from '../../common/specs/faults-of.ts';
import { type Exit, readExit } from '../domain/exit.ts';
import type { Adapter, HarnessCommand, HarnessPackage } from './adapter.ts';

/** Loading one; then HARNESS_PLUGIN_INVALID. */
const LOAD_MS = 10_000;
/** A call of one of its functions, which holds up all other runs of the node; then the same. */
const CALL_MS = 1_000;
/** What is called from a script ends with its time limit, be it an endless loop. */
const STOPPABLE = new Script('call()');
/** That clock has an event loop of its own. */
const CLOCK_DESCRIPTORS = 8;
const TIMED_OUT = 'ERR_SCRIPT_EXECUTION_TIMEOUT';
/** A folder's name in the cache and in the sandbox. */
const NAME = /^[a-z][a-z0-9_]{0,63}$/;
const VERSION = /^(?:\w[\w.+-]{0,63})?$/;

type Method = (this: unknown, ...args: never[]) => unknown;

const callable = z.custom<Method>((value) => typeof value === 'function', { message: 'must be a function' });
const absolute = z.string().startsWith('/');
const install = z.strictObject({
  name: z.string().min(1),
  version: z.string().regex(VERSION).min(1),
  entry: z.string().min(1),
  requirements: z.string().optional(),
  pythonMin: z
    .string()
    .regex(/^3\.\d{1,2}$/, 'must be as 3.12')
    .optional(),
  script: z.string().optional(),
});
const shape = z.object({
  name: z
    .string()
    .regex(NAME, 'must be 1 to 64 of [a-z0-9_], the first one a letter')
    .refine((name) => !(HARNESSES as readonly string[]).includes(name), 'is the name of another harness'),
  version: z
    .string()
    .regex(VERSION, 'must be up to 64 of [A-Za-z0-9_.+-], the first one no mark')
    .default(''),
  dialect: z.string().default(''),
  install: install.optional(),
  transcripts: z.array(absolute).default([]),
  skillsDir: absolute.optional(),
  files: callable.optional(),
  command: callable,
  readExit: callable.optional(),
});

/** What its functions give. */
const clean = absolute.regex(/^(?!.*\/\.\.(?:\/|$))[^\0]*$/s, 'must hold neither .. nor NUL');
const filesShape = z.array(z.strictObject({ path: clean, content: z.string() }));
const commandShape = z.strictObject({
  argv: z.array(anyArgument).min(1),
  env: z
    .record(z.string(), anyArgument)
    .refine((env) => Object.keys(env).every((name) => ENV_NAME.test(name)), 'must have names of variables')
    .default({}),
  cwd: clean.optional(),
  stdin: z.string().optional(),
});
const exitShape = z.object({
  outcome: z.literal([Outcome.COMPLETED, Outcome.TIMEOUT, Outcome.HARNESS_ERROR]),
  failure: z
    .object({ reason: z.string(), message: z.string().default('') })
    .transform(({ reason, message }) =>
      create(FailureSchema, {
        ...{ boundary: Boundary.HARNESS, reason, message: message.slice(0, FAILURE_MESSAGE_CHARS_MAX) },
      }),
    )
    .optional(),
});

/**
 * The `adapter` that a module exports; what it leaves out has the default. A file that has changed is loaded anew.
 * Throws HARNESS_INSTALL_FAILED where the node is short of what reading it takes, else HARNESS_PLUGIN_INVALID, which says
 * what is wrong; so do its functions where the module's own throw, or give something else.
 */
export async function loadPlugin(
  pluginsDir: string | undefined,
  importPath: string,
  loadMs = LOAD_MS,
): Promise<Adapter> {
  if (pluginsDir === undefined) throw invalid(importPath, 'this node has no plugins_dir');
  const { adapter } = await load(await fileOf(pluginsDir, importPath), importPath, loadMs);
  if (adapter === undefined) throw invalid(importPath, 'it exports no `adapter`');
  const found = checkStrict(shape, adapter, importPath, 'HARNESS_PLUGIN_INVALID');
  const { name, version, dialect, transcripts, skillsDir } = found;
  const ask = <T extends z.ZodType>(method: 'files' | 'command' | 'readExit', given: object, schema: T) =>
    checked(importPath, method, schema, () => found[method]?.call(adapter, given as never));
  return {
    ...{ name, version, dialect, transcripts, skillsDir },
    install: found.install as HarnessPackage | undefined,
    files: (context) => (found.files === undefined ? [] : ask('files', context, filesShape)),
    command: (context) => ask('command', context, commandShape) as HarnessCommand,
    readExit: (facts) =>
      found.readExit === undefined ? readExit(facts) : (ask('readExit', facts, exitShape) as Exit),
  };
}

/** A module may do anything while it is loaded, and wait for anything. */
async function load(file: string, importPath: string, loadMs: number): Promise<{ adapter?: unknown }> {
  const { mtimeMs } = await stat(file);
  using deadline = new Deadline(loadMs);
  const loading: Promise<{ adapter?: unknown }> = import(`${pathToFileURL(file)}?changed=${mtimeMs}`);
  try {
    return await abortable(loading, deadline.signal);
  } catch (error) {
    if (deadline.isOver) throw invalid(importPath, `it was not loaded in ${loadMs} ms`);
    if (isShortage(error)) throw unread(importPath, error);
    throw invalid(importPath, `it cannot be loaded: ${asPolarError(error).message}`);
  }
}

function checked<T extends z.ZodType>(
  importPath: string,
  method: string,
  schema: T,
  call: () => unknown,
): z.output<T> {
  refuseWithoutDescriptors(importPath);
  let given: unknown;
  try {
    given = STOPPABLE.runInNewContext({ call }, { timeout: CALL_MS });
  } catch (error) {
    // Of that script's own Error.
    const isLate = (error as { code?: unknown } | null | undefined)?.code === TIMED_OUT;
    if (isLate) throw invalid(importPath, `${method} took longer than ${CALL_MS} ms`);
    throw invalid(importPath, `${method} threw: ${asPolarError(error).message}`);
  }
  if (given instanceof Promise) {
    given.catch(() => {});
    throw invalid(importPath, `${method} gave a promise, and is not waited for`);
  }
  return checkStrict(schema, given, `${importPath}: what ${method} gave`, 'HARNESS_PLUGIN_INVALID');
}

/** Node.js ends the whole process where it has none for the clock of a time limit. */
function refuseWithoutDescriptors(importPath: string): void {
  using opened = new DisposableStack();
  try {
    for (let i = 0; i < CLOCK_DESCRIPTORS; i++) opened.adopt(openSync('/dev/null', 'r'), closeSync);
  } catch (error) {
    throw unread(importPath, error);
  }
}

/** Links may not lead out of the folder. */
async function fileOf(pluginsDir: string, importPath: string): Promise<string> {
  try {
    const folder = await realpath(pluginsDir);
    const file = await realpath(join(folder, importPath));
    if (file.startsWith(folder + sep)) return file;
  } catch (error) {
    if (isShortage(error)) throw unread(importPath, error);
    throw invalid(importPath, `it is not there (${(error as NodeJS.ErrnoException).code})`);
  }
  throw invalid(importPath, 'it lies outside of plugins_dir');
}

const invalid = (importPath: string, why: string): PolarError =>
  new PolarError('HARNESS_PLUGIN_INVALID', `plug-in ${importPath}: ${why}`);

/** No task is to blame. */
const unread = (importPath: string, error: unknown): PolarError =>
  new PolarError(
    'HARNESS_INSTALL_FAILED',
    `plug-in ${importPath} cannot be read, or called: ${(error as Error).message}`,
  );
