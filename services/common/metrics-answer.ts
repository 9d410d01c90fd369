// GET /metrics: for who may read, where access tokens are asked for.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AccessControl } from './access/access-control.ts';
import { asPolarError } from './errors.ts';
import { METRICS_TYPE, metricsText } from './metrics.ts';
import './process-metrics.ts';

export const METRICS_PATH = '/metrics';
const [UNAUTHORIZED, FORBIDDEN, NOT_ALLOWED, FAILED] = [401, 403, 405, 500];

/** HTTP/2 requests come in Node's compatibility form, which has what is used here. */
export async function answerMetrics(
  { method, headers }: IncomingMessage,
  response: ServerResponse,
  access: AccessControl | undefined,
): Promise<void> {
  const plain = (status: number, text: string): void => {
    response.writeHead(status, { 'content-type': 'text/plain' });
    response.end(`${text}\n`);
  };
  if (method !== 'GET' && method !== 'HEAD') return plain(NOT_ALLOWED, 'GET it');
  try {
    access?.requireScope('read', headers.authorization, METRICS_PATH);
  } catch (error) {
    const { reason, message } = asPolarError(error);
    return plain(reason === 'UNAUTHENTICATED' ? UNAUTHORIZED : FORBIDDEN, message);
  }
  try {
    const text = await metricsText();
    response.writeHead(200, { 'content-type': METRICS_TYPE });
    response.end(text);
  } catch (error) {
    plain(FAILED, `metrics could not be read: ${asPolarError(error).message}`);
  }
}
