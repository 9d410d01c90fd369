// Plain HTTP from harnesses: who asks, what for, and the answer in the dialect's form.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { greetingOf } from '../../common/greeting.ts';
import { count } from '../calls/count.ts';
import { generate } from '../calls/generate.ts';
import { answerTokenize } from '../calls/tokenize.ts';
import type { LlmProxyContext } from '../context.ts';
import { DIALECT_NAMES, dialectOf, errorDialectOf } from '../dialects/dialects.ts';
import { whyNotOffered } from '../dialects/not-offered.ts';
import { type DialectName, readPath, type Target } from '../domain/paths.ts';
import { requestRefused } from '../events.ts';
import { sendError, sendJson } from './answer.ts';

/** What is asked for with a body. */
const POSTED: readonly Target['kind'][] = ['generate', 'count', 'tokenize'];

/** Takes every request that is neither an RPC nor health. */
export function harnessHandler(
  ctx: LlmProxyContext,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (request, response) => {
    void answer(ctx, request, response);
    return true;
  };
}

const nothing = (): void => {};

async function answer(
  ctx: LlmProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // A connection that breaks is seen as its close; the error itself says nothing more.
  request.on('error', nothing);
  response.on('error', nothing);
  const { target, capabilities } = readPath(request.url ?? '', request.headers);
  const dialect = errorDialectOf(target.dialect);
  try {
    using _ = ctx.attempts.enter();
    if (ctx.stopping.aborted) throw new PolarError('SHUTTING_DOWN', 'the proxy is stopping; call again');
    const capability = await authorize(ctx, capabilities, greetingOf(request));
    using __ = capability.ref && ctx.attempts.enterFor(capability.ref);
    if (request.headers.upgrade?.toLowerCase() === 'websocket') {
      const error = new PolarError('INVALID_REQUEST', 'WebSocket is not offered; use HTTP');
      return sendError(response, error, dialect, 426);
    }
    await serve(ctx, capability, target, request, response);
  } catch (error) {
    requestRefused(ctx.log, error);
    sendError(response, asPolarError(error), dialect);
  }
}

/** `session`: that of the sandbox which the request comes from, if it comes from one. */
async function authorize(
  ctx: LlmProxyContext,
  offered: readonly string[],
  session: string | undefined,
): Promise<Capability> {
  for (const secret of offered) {
    const found = await ctx.capabilities.find(secret);
    if (found === undefined) continue;
    if (session === undefined || found.ref?.sessionId === session) return found;
    throw new PolarError('CAPABILITY_INVALID', 'the capability is that of another session');
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
  const dialect = dialectOf(target.dialect);
  // What is asked of a model by a method of Google's API that is not offered reads as a name with a colon.
  if (target.kind === 'model' && method === 'POST') throw notOffered(target.dialect, method, target.id);
  const expected = POSTED.includes(target.kind) ? ['POST'] : ['GET', 'HEAD'];
  if (target.kind !== 'unknown' && !expected.includes(method)) {
    const message = `${method} is not offered here; use ${expected.join(' or ')}`;
    response.setHeader('allow', expected.join(', '));
    return sendError(response, new PolarError('INVALID_REQUEST', message), dialect, 405);
  }
  switch (target.kind) {
    case 'generate':
      return await generate(ctx, capability, target, request, response);
    case 'models':
      return sendJson(response, 200, dialect.modelsBody(await modelNames(ctx, capability)));
    // As calls are answered under whichever name they ask for, and some clients look it up before they call.
    case 'model':
      return sendJson(response, 200, dialect.modelBody(target.id));
    case 'root':
      return sendJson(response, 200, { service: 'polar llm-proxy', dialects: DIALECT_NAMES });
    case 'count':
      return await count(ctx, capability, target, request, response);
    case 'tokenize':
      return await answerTokenize(ctx, capability, request, response);
    case 'unknown':
      throw notOffered(target.dialect, method, target.path);
  }
}

function notOffered(dialect: DialectName, method: string, path: string): PolarError {
  const why = whyNotOffered(dialect, path) ?? "see the llm-proxy's README";
  return new PolarError('NOT_FOUND', `${method} of this path is not offered: ${why}`);
}

/** The name under which the harness knows the policy, then the frozen models that its task allows. */
async function modelNames({ engines, stopping }: LlmProxyContext, capability: Capability): Promise<string[]> {
  const policy = capability.modelName !== '' ? capability.modelName : await engines.model(stopping);
  return [policy, ...capability.modelPools.filter((alias) => engines.has(alias))];
}
