// What is wrong with a request: all of it at once, each by the path of its field.
import { type FieldFault, PolarError } from '../../common/errors.ts';
import type { JsonValue } from '../domain/json.ts';

/** Faults that one answer names. */
const FAULTS_MAX = 20;
/** Length of one fault's words, which may quote the request. */
const DESCRIPTION_CHARS_MAX = 200;

/** What a value has to be. */
export interface Check {
  readonly ok: (value: JsonValue) => boolean;
  readonly says: string;
}

/** What the operator of a node lets requests have that is not safe everywhere. */
export interface Allowed {
  /** Images at http and https addresses, which the engine fetches. */
  readonly imageUrls: boolean;
}

const NOTHING: Allowed = { imageUrls: false };

export class Faults {
  readonly allowed: Allowed;
  readonly #found: FieldFault[] = [];

  constructor(allowed = NOTHING) {
    this.allowed = allowed;
  }

  add(field: string, description: string): void {
    if (this.#found.length >= FAULTS_MAX) return;
    this.#found.push({ field, description: description.slice(0, DESCRIPTION_CHARS_MAX) });
  }

  get none(): boolean {
    return this.#found.length === 0;
  }

  /** Whether `ok`; if not, it is a fault. */
  expect(ok: boolean, field: string, description: string): boolean {
    if (!ok) this.add(field, description);
    return ok;
  }

  /** Whether the value is as the check wants it; null stands for absent. */
  check(value: JsonValue | undefined, field: string, { ok, says }: Check): boolean {
    return value === undefined || value === null || this.expect(ok(value), field, says);
  }

  /** Throws DIALECT_INVALID. */
  throwIfAny(): void {
    if (this.#found.length > 0) throw invalid(this.#found);
  }
}

export const invalid = (fields: readonly FieldFault[]): PolarError =>
  new PolarError(
    'DIALECT_INVALID',
    fields.map(({ field, description }) => `${field}: ${description}`).join('; '),
    { fields },
  );
