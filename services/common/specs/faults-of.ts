// Collecting the faults of one input: a field path, a rule, a description. Nothing is thrown, so that all come at once.
import type { JsonObject } from '@bufbuild/protobuf';
import { type ZodType, z } from 'zod';
import { checkStrict } from '../config/faults.ts';
import { type FieldFault, PolarError } from '../errors.ts';

/** Of one argument or variable of a process: Linux takes no longer one, and runs nothing then. */
export const ARGUMENT_BYTES_MAX = 128 * 1024 - 1;
export const NUL = 'must not hold a NUL character';
/** Text that becomes one. */
export const anyArgument = z
  .string()
  .refine((text) => Buffer.byteLength(text) <= ARGUMENT_BYTES_MAX, {
    error: `must be at most ${ARGUMENT_BYTES_MAX} bytes: upload a file`,
  })
  .refine((text) => !text.includes('\0'), NUL);
export const argument = anyArgument.min(1);
/** Of one environment. Those of a command are joined, and bwrap takes 9,000 arguments in all, three for each variable. */
const VARIABLES_MAX = 512;
export const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export class Faults {
  readonly found: FieldFault[] = [];

  /** A fault unless `ok`; answers whether it was. */
  require(ok: boolean, field: string, description: string): boolean {
    if (!ok) this.found.push({ field, description });
    return ok;
  }

  range(value: number, min: number, max: number, field: string): void {
    this.require(
      value >= min && value <= max,
      field,
      `must be from ${min} to ${max}, not ${Number.isFinite(value) ? value : 'no number'}`,
    );
  }

  /** A path inside a sandbox that cannot leave the folder it names. */
  absolutePath(path: string, field: string): void {
    if (!this.require(path.startsWith('/'), field, 'must be an absolute path in the sandbox')) return;
    this.#cleanPath(path, field);
  }

  relativePath(path: string, field: string): void {
    if (!this.require(path !== '' && !path.startsWith('/'), field, 'must be a path relative to target')) {
      return;
    }
    this.#cleanPath(path, field);
  }

  environment(env: Readonly<Record<string, string>>, field: string): void {
    const count = Object.keys(env).length;
    if (!this.require(count <= VARIABLES_MAX, field, `has ${count} variables, at most ${VARIABLES_MAX}`))
      return;
    for (const [name, value] of Object.entries(env)) {
      this.require(
        ENV_NAME.test(name),
        `${field}.${name}`,
        'must be a variable name: [A-Za-z_][A-Za-z0-9_]*',
      );
      this.require(!value.includes('\0'), `${field}.${name}`, NUL);
      this.argument(`${name}=${value}`, `${field}.${name}`);
    }
  }

  /** Text that becomes an argument of a process. */
  text(value: string, field: string): void {
    if (!this.require(value.trim() !== '', field, 'must not be empty')) return;
    this.require(!value.includes('\0'), field, NUL);
  }

  /** One that is given to a process as it is. */
  argument(value: string, field: string): void {
    const bytes = Buffer.byteLength(value);
    const what = `is ${bytes} bytes, at most ${ARGUMENT_BYTES_MAX} on Linux: upload a file`;
    this.require(bytes <= ARGUMENT_BYTES_MAX, field, what);
  }

  /** A configuration by its schema; unset is the empty one. */
  config(schema: ZodType, value: JsonObject | undefined, field: string): void {
    try {
      checkStrict(schema, value ?? {}, field, 'INVALID_TASK');
    } catch (error) {
      if (!(error instanceof PolarError)) throw error;
      for (const fault of error.fields) {
        const below = fault.field === '(document)' ? field : `${field}.${fault.field}`;
        this.found.push({ field: below, description: fault.description });
      }
    }
  }

  #cleanPath(path: string, field: string): void {
    this.require(!path.split('/').includes('..'), field, 'must not hold ..');
    this.require(!path.includes('\0'), field, NUL);
  }
}
