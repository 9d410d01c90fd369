// A @grpc/grpc-js client of a generated service: what a program outside the mesh would use.
import {
  create,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import * as grpc from '@grpc/grpc-js';

type Method = GenServiceMethods[string];

/** A typed client: promises for unary methods, readable streams (end them with `cancel()`) for streaming ones. */
export type GrpcJsClient<T extends GenServiceMethods> = Disposable & {
  [K in keyof T]: Calls<T[K]>[T[K]['methodKind']];
};

interface Calls<M extends Method> {
  unary(request: MessageInitShape<M['input']>): Promise<MessageShape<M['output']>>;
  server_streaming(
    request: MessageInitShape<M['input']>,
  ): grpc.ClientReadableStream<MessageShape<M['output']>>;
  client_streaming: never;
  bidi_streaming: never;
}

const encode =
  (desc: DescMessage) =>
  (message: Message): Buffer =>
    Buffer.from(toBinary(desc, message));

/** `url` is http://host:port. */
export function grpcJsClient<T extends GenServiceMethods>(
  service: GenService<T>,
  url: string,
): GrpcJsClient<T> {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure(), {
    'grpc.max_receive_message_length': -1,
  });
  const calls = service.methods.map((method) => {
    const path = `/${service.typeName}/${method.name}`;
    const [write, read] = [encode(method.input), (bytes: Buffer) => fromBinary(method.output, bytes)];
    const stream = (init: Record<string, unknown>) =>
      client.makeServerStreamRequest(path, write, read, create(method.input, init));
    const unary = (init: Record<string, unknown>) =>
      new Promise<Message>((resolve, reject) => {
        client.makeUnaryRequest(path, write, read, create(method.input, init), (error, reply) => {
          if (reply === undefined) reject(error);
          else resolve(reply);
        });
      });
    return [method.localName, method.methodKind === 'server_streaming' ? stream : unary];
  });
  const close = { [Symbol.dispose]: () => client.close() };
  return Object.assign(Object.fromEntries(calls), close) as GrpcJsClient<T>;
}
