// Counts RPCs, for `/metrics`.
import { Code, ConnectError, type Interceptor } from '@connectrpc/connect';
import { CALL_SECONDS, counter, histogram } from './metrics.ts';

const ended = counter('polar_rpc_ended_total', 'RPCs that ended, by method and code; OK: without an error.', [
  'method',
  'code',
]);
const seconds = histogram('polar_rpc_seconds', 'RPCs with one answer.', CALL_SECONDS, ['method']);

/** To be the first one: it sees errors as callers do. */
export const countRpcs: Interceptor = (next) => async (request) => {
  const method = `${request.service.typeName}/${request.method.name}`;
  const began = performance.now();
  try {
    const response = await next(request);
    if (response.stream) return { ...response, message: counted(response.message, method) };
    ended.inc({ method, code: 'OK' });
    seconds.observe({ method }, (performance.now() - began) / 1_000);
    return response;
  } catch (error) {
    ended.inc({ method, code: codeOf(error) });
    throw error;
  }
};

async function* counted<T>(messages: AsyncIterable<T>, method: string): AsyncIterable<T> {
  let code = 'OK';
  try {
    yield* messages;
  } catch (error) {
    code = codeOf(error);
    throw error;
  } finally {
    ended.inc({ method, code });
  }
}

/** The same for one that Connect does not see; `ms`: how long it took, of one with one answer. */
export function countCall(method: string, error: unknown, ms?: number): void {
  ended.inc({ method, code: error === undefined ? 'OK' : codeOf(error) });
  if (error === undefined && ms !== undefined) seconds.observe({ method }, ms / 1_000);
}

const codeOf = (error: unknown): string => Code[ConnectError.from(error).code];
