// Plain HTTP from harnesses: who asks, what for, and the answer in the dialect's form.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { chat } from '../calls/chat.ts';
import type { LlmProxyContext } from '../context.ts';
import { modelBody } from '../dialects/openai-chat-reply.ts';
import { readPath, type Target } from '../domain/paths.ts';
import { requestRefused } from '../events.ts';
import { sendError, sendJson } from './answer.ts';

/** Takes every request that is neither an RPC nor health. */
export function harnessHandler(
  ctx: LlmProxyContext,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (request, response) => {
    void answer(ctx, request, response);
    return true;
  };
}

async function answer(
  ctx: LlmProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // A connection that breaks is seen as its close; the error itself says nothing more.
  request.on('error', () => {});
  response.on('error', () => {});
  try {
    using _ = ctx.attempts.enter();
    if (ctx.stopping.aborted) throw new PolarError('SHUTTING_DOWN', 'the proxy is stopping; call again');
    const { target, capabilities } = readPath(request.url ?? '', request.headers);
    const capability = await authorize(ctx, capabilities);
    if (request.headers.upgrade?.toLowerCase() === 'websocket') {
      return sendError(
        response,
        new PolarError('INVALID_REQUEST', 'WebSocket is not offered; use HTTP'),
        426,
      );
    }
    await serve(ctx, capability, target, request, response);
  } catch (error) {
    requestRefused(ctx.log, error);
    sendError(response, asPolarError(error));
  }
}

async function authorize(ctx: LlmProxyContext, offered: readonly string[]): Promise<Capability> {
  for (const secret of offered) {
    const found = await ctx.capabilities.find(secret);
    if (found !== undefined) return found;
  }
  throw new PolarError(
    'CAPABILITY_INVALID',
    'no valid capability: call /s/<capability>/…, or send the capability as API key',
  );
}

async function serve(
  ctx: LlmProxyContext,
  capability: Capability,
  target: Target,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const method = request.method ?? '';
  const expected = target.kind === 'chat' ? ['POST'] : ['GET', 'HEAD'];
  if (target.kind !== 'unknown' && !expected.includes(method)) {
    const message = `${method} is not offered here; use ${expected.join(' or ')}`;
    return sendError(response, new PolarError('INVALID_REQUEST', message), 405);
  }
  switch (target.kind) {
    case 'chat':
      return await chat(ctx, capability, request, response);
    case 'models':
      return sendJson(response, 200, { object: 'list', data: [modelBody(await modelName(ctx, capability))] });
    case 'model': {
      const name = await modelName(ctx, capability);
      if (target.id !== name) throw new PolarError('NOT_FOUND', 'no such model; see /v1/models');
      return sendJson(response, 200, modelBody(name));
    }
    case 'root':
      return sendJson(response, 200, { service: 'polar llm-proxy', dialects: ['openai-chat'] });
    case 'unknown':
      throw new PolarError(
        'NOT_FOUND',
        `${method} of this path is not offered; there is POST /v1/chat/completions`,
      );
  }
}

/** The name under which the harness knows the model. */
const modelName = async (ctx: LlmProxyContext, capability: Capability): Promise<string> =>
  capability.modelName !== '' ? capability.modelName : await ctx.engine.model(ctx.stopping);
