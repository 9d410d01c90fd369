// What evaluator plug-ins may ask of a sandbox, and how it is done.
import { z } from 'zod';
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { EXEC_TIMEOUT_MAX_MS, SANDBOX_FILE_BYTES_MAX } from '../../common/limits.ts';
import { argument } from '../../common/specs/faults-of.ts';
import { execInWorkdir, leftMs, type OpenSandbox, type SandboxFile } from '../sandboxes/sandbox.ts';
import type { Doing } from './plugin.ts';

/** What the evaluator has for it. */
export interface Given {
  open(which: 'live' | 'fresh'): Promise<OpenSandbox>;
  /** Of the task's evaluator; their paths are relative. */
  readonly files: readonly SandboxFile[];
  remainingMs(): number;
}

const MODE_MAX = 0o777;

const path = z.string().startsWith('/');
const content = z
  .union([z.string().transform((text): Uint8Array => Buffer.from(text)), z.instanceof(Uint8Array)])
  .refine(({ byteLength }) => byteLength <= SANDBOX_FILE_BYTES_MAX, {
    error: `must be at most ${SANDBOX_FILE_BYTES_MAX} bytes`,
  });
const askShape = z.discriminatedUnion('do', [
  z.strictObject({
    do: z.literal('exec'),
    command: argument,
    timeoutSeconds: z
      .number()
      .positive()
      .max(EXEC_TIMEOUT_MAX_MS / 1000)
      .default(60),
  }),
  z.strictObject({ do: z.literal('readFile'), path }),
  z.strictObject({
    do: z.literal('writeFile'),
    path,
    content,
    mode: z.int().min(1).max(MODE_MAX).default(0o644),
  }),
  z.strictObject({ do: z.literal('putFiles'), path }),
]);
type Ask = z.output<typeof askShape>;

/** Throws INVALID_REQUEST, EVALUATION_TIMEOUT where the budget cuts a command, and what sandboxes throw. */
export const doingIn =
  (given: Given): Doing =>
  async ({ sandbox, what }) => {
    const ask = checkStrict(askShape, what, 'what it asks of a sandbox', 'INVALID_REQUEST');
    return await doOne(ask, await given.open(sandbox), given);
  };

async function doOne(ask: Ask, sandbox: OpenSandbox, { files, remainingMs }: Given): Promise<unknown> {
  switch (ask.do) {
    case 'exec':
      return await exec(ask, sandbox, remainingMs);
    case 'readFile':
      return await sandbox.readFile(ask.path);
    case 'writeFile':
      return await sandbox.putFiles([{ target: ask.path, content: ask.content, mode: ask.mode }]);
    case 'putFiles':
      return await sandbox.putFiles(files.map((file) => ({ ...file, target: `${ask.path}/${file.target}` })));
  }
}

async function exec(
  { command, timeoutSeconds }: Extract<Ask, { do: 'exec' }>,
  sandbox: OpenSandbox,
  remainingMs: () => number,
): Promise<object> {
  const limitMs = Math.ceil(timeoutSeconds * 1000);
  const timeoutMs = Math.min(limitMs, leftMs(remainingMs));
  const { stdout, stderr, result } = await execInWorkdir(sandbox, command, timeoutMs);
  const { timedOut, exitCode, outOfMemory } = result;
  if (timedOut && timeoutMs < limitMs) {
    throw new PolarError('EVALUATION_TIMEOUT', 'too little of the evaluate budget was left for a command');
  }
  return { exitCode, timedOut, outOfMemory, stdout: textOf(stdout), stderr: textOf(stderr) };
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
