// Reading strict YAML or JSON: all faults at once, each with its path in the file.
import { closeSync, openSync, readSync } from 'node:fs';
import { type Document, LineCounter, parse, parseDocument } from 'yaml';
import { type ZodType, z } from 'zod';
import { type FieldFault, PolarError, type Reason } from '../errors.ts';
import { illFormedTexts } from './ill-formed.ts';
import { inexactIntegers } from './inexact.ts';
import { nearKey } from './near-keys.ts';

/**
 * Files are YAML 1.2, with the merge keys (`<<`) of 1.1, which other programs read, too. Keys are texts as they are written:
 * test `001` is not test `1`.
 */
const YAML = { merge: true, stringKeys: true };

/** Strict YAML or JSON that was checked already, as it stands. */
export const parsePlain = (text: string): unknown => parse(text, YAML);

/** Parse and check; throws a PolarError with one fault for each wrong field. */
export function parseStrict<T extends ZodType>(
  schema: T,
  text: string,
  file: string,
  reason: Reason,
): z.output<T> {
  const lines = new LineCounter();
  const document = parseDocument(text, { ...YAML, lineCounter: lines, prettyErrors: false });
  // A tag that nobody knows, such as !include, is a warning: what it stands before would be read as it is.
  const found = [...document.errors, ...document.warnings];
  if (found.length > 0) {
    throw faulty(
      reason,
      file,
      found.map(({ code, message, pos }) => {
        const { line, col } = lines.linePos(pos[0]);
        return { field: `line ${line}, column ${col}`, description: DESCRIPTIONS[code] ?? wordsFor(message) };
      }),
    );
  }
  const value = plainOf(document, file, reason);
  const known = [...inexactIntegers(document.contents), ...illFormedTexts(value)];
  const faults = known.map(({ path, description }) => ({ field: pathOf(path), description }));
  return checkStrict(schema, value, file, reason, faults);
}

/** Where the parser's own words tell of the parser. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  BLOCK_AS_IMPLICIT_KEY:
    'a mapping or list stands where a text was begun: quote a text that holds ": ", or mind how far lines are indented',
  MULTIPLE_DOCS: 'another document begins; one is read',
  NON_STRING_KEY: 'a mapping or list stands as a key: quote a text that begins with { or [',
};

/** The parser goes down a level by a call of its own. */
const wordsFor = (message: string): string =>
  message.includes('call stack') ? 'there are too many levels of mappings and lists' : message;

/** Throws where its aliases make more of it than can be held, as where one stands within what it names. */
function plainOf(document: Document, file: string, reason: Reason): unknown {
  const fault = (description: string): PolarError =>
    faulty(reason, file, [{ field: '(document)', description }]);
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    throw fault((error as Error).message);
  }
  if (holdsItself(value)) throw fault('an alias stands within what it names');
  return value;
}

function holdsItself(value: unknown, around: readonly unknown[] = []): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (around.includes(value)) return true;
  const within = [...around, value];
  return Object.values(value).some((one) => holdsItself(one, within));
}

/** Check a value that is already parsed. `known`: what is wrong with it in any case. */
export function checkStrict<T extends ZodType>(
  schema: T,
  value: unknown,
  what: string,
  reason: Reason,
  known: readonly FieldFault[] = [],
): z.output<T> {
  const result = schema.safeParse(value, { error: wordsOf });
  if (result.success && known.length === 0) return result.data;
  const issues = result.error?.issues ?? [];
  const found = issues.slice(0, FAULTS_TOLD_MAX).flatMap((issue) => faultsOf(issue, schema));
  const others = found.filter(({ field }) => known.every((one) => one.field !== field));
  throw faulty(reason, what, [...known, ...others], issues.length - FAULTS_TOLD_MAX);
}

/**
 * The same of a list that may be long, a part at a time: where each of a million has a fault, to look for all of them takes
 * seconds. Tells those of the first part that has any. `field`: what the list is called.
 */
export function checkEach(
  schema: ZodType,
  list: readonly unknown[],
  field: string,
  what: string,
  reason: Reason,
): void {
  const part = z.array(schema);
  for (let at = 0; at < list.length; at += FAULTS_TOLD_MAX) {
    const result = part.safeParse(list.slice(at, at + FAULTS_TOLD_MAX), { error: wordsOf });
    if (result.success) continue;
    const whole = z.object({ [field]: part });
    const issues = result.error.issues.map((issue) => {
      const [i, ...below] = issue.path;
      return { ...issue, path: [field, at + Number(i), ...below] };
    });
    throw faulty(
      reason,
      what,
      issues.flatMap((issue) => faultsOf(issue, whole)),
    );
  }
}

/** The text of a file, or an error that names it. `from`: a descriptor, where it is open. */
export function readText(file: string, reason: Reason, from: string | number = file): string {
  try {
    return textOf(bytesOf(from));
  } catch (error) {
    throw faulty(reason, file, [{ field: '(file)', description: (error as Error).message }]);
  }
}

/** Of a file that people write; more is another file, or a device. */
const TEXT_BYTES_MAX = 64 * 1024 * 1024;
const PIECE_BYTES = 1024 * 1024;

function bytesOf(from: string | number): Uint8Array {
  const fd = typeof from === 'number' ? from : openSync(from, 'r');
  try {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const piece = Buffer.allocUnsafe(PIECE_BYTES);
      const length = readSync(fd, piece);
      if (length === 0) return Buffer.concat(pieces);
      pieces.push(piece.subarray(0, length));
      size += length;
      if (size > TEXT_BYTES_MAX) throw new Error(`is larger than ${TEXT_BYTES_MAX} bytes`);
    }
  } finally {
    if (fd !== from) closeSync(fd);
  }
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** Throws where the bytes are no UTF-8: with other signs in their place they would say something else. */
export function textOf(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    const before = Buffer.from(bytes).toString('utf8').split('\uFFFD', 1)[0] ?? '';
    throw new Error(`line ${before.split('\n').length} is not in UTF-8`);
  }
}

/** Faults that an error lists; it counts the others. */
const FAULTS_TOLD_MAX = 100;

/** One error that lists the faults. `more`: how many there are beside them. */
export function faulty(reason: Reason, what: string, fields: readonly FieldFault[], more = 0): PolarError {
  const told = fields.slice(0, FAULTS_TOLD_MAX);
  const count = fields.length + Math.max(0, more);
  const list = told.map(({ field, description }) => `  ${field}: ${description}`);
  if (count > told.length) list.push(`  and ${count - told.length} more`);
  return new PolarError(reason, `${what} has ${count} fault(s):\n${list.join('\n')}`, {
    fields: told,
  });
}

type Issue = z.core.$ZodIssue;

/** Of a field that is not there; of others the schema's own words. */
const wordsOf: z.core.$ZodErrorMap = ({ code, input }) =>
  code === 'invalid_type' && input === undefined ? 'is missing' : undefined;

function faultsOf(issue: Issue, schema: ZodType): FieldFault[] {
  const path = pathOf(issue.path);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key, i) => {
      const near = i < FAULTS_TOLD_MAX ? nearKey(schema, issue.path, key) : undefined;
      const description = near === undefined ? 'unknown key' : `unknown key; did you mean ${near}?`;
      return { field: pathOf([...issue.path, key]), description };
    });
  }
  return [{ field: path === '' ? '(document)' : path, description: issue.message }];
}

/** `gateway.nodes[0].port` */
function pathOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, i) => (typeof part === 'number' ? `[${part}]` : `${i === 0 ? '' : '.'}${String(part)}`))
    .join('');
}
