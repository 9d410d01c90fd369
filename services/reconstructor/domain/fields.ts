// Messages of protobuf cut at their fields.
import { BinaryReader, type WireType } from '@bufbuild/protobuf/wire';

export interface Field {
  readonly no: number;
  readonly wireType: WireType;
  /** Behind its tag. */
  readonly data: Uint8Array;
  /** All of it. */
  readonly bytes: Uint8Array;
}

/** Those of a message, in order. Throws where the bytes are none. */
export function* fieldsIn(message: Uint8Array): Generator<Field, void> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [no, wireType] = reader.tag();
    const data = reader.skip(wireType, no);
    yield { no, wireType, data, bytes: message.subarray(start, reader.pos) };
  }
}
