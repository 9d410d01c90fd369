// The time that a caller gives for a call, where that is more than a timer keeps.
import type { IncomingHttpHeaders } from 'node:http';
import { parseTimeout as parseConnectTimeout } from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout } from '@connectrpc/connect/protocol-grpc';

/** Timers have 31 bits, some 24 days; one for longer would ring after 1 ms, and end the call. */
export const CALL_TIME_MS_MAX = 2 ** 31 - 1;

/** By their headers; `longest` as far as they can say it. */
const TIMES = {
  'grpc-timeout': { parse: parseGrpcTimeout, longest: `${Math.floor(CALL_TIME_MS_MAX / 1000)}S` },
  'connect-timeout-ms': { parse: parseConnectTimeout, longest: String(CALL_TIME_MS_MAX) },
};

/** A call of longer has as much as timers keep. What is no time is left for who reads it. */
export function boundCallTime(headers: IncomingHttpHeaders): void {
  for (const [header, { parse, longest }] of Object.entries(TIMES)) {
    const told = headers[header];
    if (typeof told !== 'string') continue;
    const { timeoutMs = 0 } = parse(told, CALL_TIME_MS_MAX);
    if (timeoutMs > CALL_TIME_MS_MAX) headers[header] = longest;
  }
}
