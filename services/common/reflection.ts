// grpc.reflection.v1.ServerReflection: what is served here, for callers that have no protos (grpcurl, buf curl, Postman).
import { type DescFile, type DescService, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, type ConnectRouter } from '@connectrpc/connect';
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from '../../gen/ts/grpc/reflection/v1/reflection_pb.js';
import { abortable } from './clock.ts';

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']>;

/** What older callers ask for, Python's among them; its messages are the same. */
const OLDER = '/grpc.reflection.v1alpha.';

/** The path of a request, by the name that the service of reflection has here. */
export const reflectionPath = (path: string): string =>
  path.startsWith(OLDER) ? path.replace(OLDER, '/grpc.reflection.v1.') : path;

/** Of all that the router has by now, and of itself. */
export function reflect(router: ConnectRouter): void {
  const services = new Set([...router.handlers.map(({ service }) => service), ServerReflection]);
  let known: Known | undefined;
  router.service(ServerReflection, {
    async *serverReflectionInfo(requests, { signal }) {
      known ??= new Known(services);
      const asked = requests[Symbol.asyncIterator]();
      for (;;) {
        const { done, value } = await abortable(asked.next(), signal);
        if (done) return;
        yield { validHost: value.host, originalRequest: value, messageResponse: known.answer(value) };
      }
    },
  });
}

/** Services, with the files that they are written in. */
class Known {
  readonly #services: ReadonlySet<DescService>;
  readonly #files = new Map<string, DescFile>();
  /** The file of each type, field and method, by full name. */
  readonly #symbols = new Map<string, DescFile>();

  constructor(services: ReadonlySet<DescService>) {
    this.#services = services;
    for (const { file } of services) {
      for (const one of withImports(file)) {
        this.#files.set(one.proto.name, one);
        for (const name of symbolsOf(one)) this.#symbols.set(name, one);
      }
    }
  }

  answer({ messageRequest: { case: what, value } }: ServerReflectionRequest): Answer {
    switch (what) {
      case 'listServices': {
        const service = [...this.#services].map(({ typeName: name }) => ({ name }));
        return { case: 'listServicesResponse', value: { service } };
      }
      case 'fileByFilename':
        return found(this.#files.get(value), value);
      case 'fileContainingSymbol':
        return found(this.#symbols.get(value), value);
      case 'fileContainingExtension':
        return missing(`no extensions of ${value.containingType}`);
      case 'allExtensionNumbersOfType':
        if (!this.#symbols.has(value)) return missing(`unknown: ${value}`);
        return { case: 'allExtensionNumbersResponse', value: { baseTypeName: value } };
      case undefined:
        return {
          case: 'errorResponse',
          value: { errorCode: Code.InvalidArgument, errorMessage: 'asks for nothing' },
        };
    }
  }
}

/** The file and all that it imports. */
function withImports(file: DescFile, found = new Set<DescFile>()): Set<DescFile> {
  if (found.has(file)) return found;
  found.add(file);
  for (const one of file.dependencies) withImports(one, found);
  return found;
}

function* symbolsOf(file: DescFile): Iterable<string> {
  for (const type of nestedTypes(file)) {
    yield type.typeName;
    if (type.kind === 'message') for (const { name } of type.fields) yield `${type.typeName}.${name}`;
    if (type.kind === 'service') for (const { name } of type.methods) yield `${type.typeName}.${name}`;
  }
}

function found(file: DescFile | undefined, name: string): Answer {
  if (file === undefined) return missing(`unknown: ${name}`);
  const all = [...withImports(file)].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: all } };
}

const missing = (errorMessage: string): Answer => ({
  case: 'errorResponse',
  value: { errorCode: Code.NotFound, errorMessage },
});
