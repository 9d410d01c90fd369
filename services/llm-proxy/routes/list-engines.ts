// ListEngines: the node's engine, asked now whether it answers.
import type { ServiceImpl } from '@connectrpc/connect';
import type { ProxyService } from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import type { LlmProxyContext } from '../context.ts';

export function listEngines(ctx: LlmProxyContext): Pick<ServiceImpl<typeof ProxyService>, 'listEngines'> {
  return {
    async listEngines(_request, { signal }) {
      const engines = ctx.engines.all.map(async (engine) => {
        const { model, problem } = await engine.probe(signal);
        const { kind } = engine.adapter;
        return { kind, baseUrl: engine.name, model, healthy: problem === '', problem };
      });
      return { engines: await Promise.all(engines) };
    },
  };
}
