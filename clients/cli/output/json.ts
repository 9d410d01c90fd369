// Messages as JSON for scripts: what is zero, false or empty is there, too.
import { type DescMessage, type JsonValue, type MessageShape, toJson } from '@bufbuild/protobuf';

export const jsonOf = <T extends DescMessage>(schema: T, message: MessageShape<T>): JsonValue =>
  toJson(schema, message, { alwaysEmitImplicit: true });
