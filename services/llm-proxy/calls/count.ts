// How many tokens a prompt has: asked of the engine, not sampled from, not recorded.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PolarError } from '../../common/errors.ts';
import type { LlmProxyContext } from '../context.ts';
import { dialectOf, readRequest } from '../dialects/dialects.ts';
import { normalised } from '../domain/normalise.ts';
import type { CountTarget } from '../domain/paths.ts';
import { tokenize } from '../engines/tokenize.ts';
import { sendJson } from '../http/answer.ts';
import { parseBody, readBody } from '../http/body.ts';

/** Throws what the answer is to say where there is none. */
export async function count(
  { engines, config, stopping }: LlmProxyContext,
  target: CountTarget,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const dialect = dialectOf(target.dialect);
  if (dialect.countBody === undefined) throw new PolarError('NOT_FOUND', `${dialect.name} counts no tokens`);
  const body = parseBody(await readBody(request));
  const asked = readRequest(dialect, body, { ...target, kind: 'generate' });
  const { messages } = normalised(asked.messages, config.node.normalise);
  const { ids } = await tokenize(engines.policy, { ...asked, messages }, stopping);
  sendJson(response, 200, dialect.countBody(ids.length));
}
