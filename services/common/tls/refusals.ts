// Answers to calls on connections that are refused, in the form of the protocol that each call came by.
import {
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type Interceptor,
} from '@connectrpc/connect';
import { connectHandler } from '../connect-handler.ts';
import { PolarError, toConnectError } from '../errors.ts';
import { RPC_BODY_BYTES_MAX } from '../limits.ts';
import type { Handler } from '../port.ts';
import type { CertificateStore } from './certificates.ts';
import { refusalOf } from './server-options.ts';

const REFUSAL = createContextKey('');
const NO_TLS_STATUS = 400;

/** `routes` are those that would answer: they are known by name, and none is called. */
export function refusals(store: CertificateStore, routes: (router: ConnectRouter) => void): Handler {
  const whyOf = (request: Parameters<Handler>[0]): string => refusalOf(store, request.socket) ?? '';
  const refuse: Interceptor = () => async (request) => {
    throw toConnectError(new PolarError('TLS_FAILED', request.contextValues.get(REFUSAL)));
  };
  return connectHandler({
    routes,
    interceptors: [refuse],
    readMaxBytes: RPC_BODY_BYTES_MAX,
    contextValues: (request) => createContextValues().set(REFUSAL, whyOf(request as Parameters<Handler>[0])),
    fallback: (request, response) => {
      response.writeHead(NO_TLS_STATUS, { 'content-type': 'text/plain' });
      response.end(`${whyOf(request as Parameters<Handler>[0])}\n`);
    },
  });
}
