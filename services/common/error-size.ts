// Errors go out in the trailers of gRPC. What is above the other side's limit, 8 KiB for most clients of gRPC and 64 KiB for
// Node.js, does not arrive as that error, and in Node.js takes the connection with all its calls along: an error that
// repeats what it was given is cut.
import type { FieldFault } from './errors.ts';

/** As the trailer has it: percent-encoded. */
const MESSAGE_BYTES_MAX = 3_072;
/** Of all faults together; the trailer has a third more. */
const FIELDS_BYTES_MAX = 2_560;
/** Of one path or description. */
const FIELD_BYTES_MAX = 512;
const CUT = '…';

/** The text, cut where it is longer than that many bytes once it is percent-encoded. */
export function shortened(text: string, bytesMax = MESSAGE_BYTES_MAX): string {
  const sizeOf = (part: string): number => encodeURIComponent(part).length;
  let part = text.slice(0, bytesMax).toWellFormed();
  if (part.length === text.length && sizeOf(part) <= bytesMax) return part;
  while (sizeOf(part) > bytesMax) part = part.slice(0, Math.floor(part.length * 0.9)).toWellFormed();
  return part + CUT;
}

/** The first faults, each shortened; what is left out is counted in a last one. */
export function shortFields(fields: readonly FieldFault[]): FieldFault[] {
  const kept: FieldFault[] = [];
  let size = 0;
  for (const { field, description } of fields) {
    const one = {
      field: shortened(field, FIELD_BYTES_MAX),
      description: shortened(description, FIELD_BYTES_MAX),
    };
    size += Buffer.byteLength(one.field) + Buffer.byteLength(one.description);
    if (size > FIELDS_BYTES_MAX) {
      const description = `${fields.length - kept.length} more faults are not listed`;
      return [...kept, { field: CUT, description }];
    }
    kept.push(one);
  }
  return kept;
}
