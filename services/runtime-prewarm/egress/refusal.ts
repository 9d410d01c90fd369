// How the egress proxy says no: a status, and a body that programs can read.
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { PolarError, type Reason } from '../../common/errors.ts';
import type { EgressDenial } from '../domain/egress.ts';

/** Reasons that clients of the proxy see, and their statuses. */
const STATUSES = {
  EGRESS_DENIED: [403, 'Forbidden'],
  EGRESS_LIMIT: [429, 'Too Many Requests'],
  EGRESS_UNREACHABLE: [502, 'Bad Gateway'],
  INVALID_REQUEST: [400, 'Bad Request'],
} as const satisfies Partial<Record<Reason, readonly [number, string]>>;

export class Refusal extends PolarError {
  /** The rule that refused it, where one did. */
  readonly rule: EgressDenial | undefined;

  constructor(reason: keyof typeof STATUSES, message: string, rule?: EgressDenial) {
    super(reason, message);
    this.rule = rule;
  }
}

/** As the answer to a CONNECT. */
export function refuseTunnel(client: Duplex, error: unknown): void {
  const { status, phrase, body } = formOf(error);
  const head = [
    `HTTP/1.1 ${status} ${phrase}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  client.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** As the answer to a request; cut where an answer has begun, or nobody waits for it any more. */
export function refuseRequest(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const { status, phrase, body } = formOf(error);
  // Its body may not have been read.
  response.writeHead(status, phrase, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  response.end(body);
}

function formOf(thrown: unknown): { status: number; phrase: string; body: string } {
  const error = thrown instanceof Refusal ? thrown : new Refusal('EGRESS_UNREACHABLE', String(thrown));
  const { reason, message, rule } = error;
  const [status, phrase] = STATUSES[reason as keyof typeof STATUSES];
  return { status, phrase, body: `${JSON.stringify({ error: { reason, message, rule } })}\n` };
}
