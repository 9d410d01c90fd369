// ListEngines: the node's engines, asked now whether they answer.
import type { ServiceImpl } from '@connectrpc/connect';
import type { ProxyService } from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import type { LlmProxyContext } from '../context.ts';
import type { Member } from '../engines/member.ts';

export function listEngines(ctx: LlmProxyContext): Pick<ServiceImpl<typeof ProxyService>, 'listEngines'> {
  return {
    async listEngines(_request, { signal }) {
      const engines = ctx.engines.pools.flatMap(({ spec, members }) =>
        members.map((member) => told(spec.alias, member, signal)),
      );
      return { engines: await Promise.all(engines) };
    },
  };
}

async function told(pool: string, member: Member, signal: AbortSignal) {
  const { engine, load, loadMax, sessions, draining } = member;
  const { model, problem } = await engine.probe(signal);
  const { kind, features } = engine.adapter;
  return {
    kind,
    baseUrl: engine.name,
    model,
    healthy: problem === '',
    problem,
    pool,
    callsInFlight: load,
    callsInFlightMax: loadMax,
    sessions,
    draining,
    features,
  };
}
