// Messages that are in store, read however deep their parts lie in each other: what was taken once must never keep a service
// from starting.
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';

/** Of protobuf's readers. A level of JSON is two or three of messages; what is stored anew is far below, see FREE_FORM_LEVELS_MAX. */
export const DEEP = { recursionLimit: 1_000 };

/** Throws where the bytes are no such message. */
export const fromStored = <T extends DescMessage>(schema: T, bytes: Uint8Array): MessageShape<T> =>
  fromBinary(schema, bytes, DEEP);
