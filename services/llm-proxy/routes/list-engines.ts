// ListEngines: the node's engines, asked now whether they answer.
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import type {
  AuditReportSchema,
  ProxyService,
} from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import type { LlmProxyContext } from '../context.ts';
import type { AuditCounts } from '../domain/audit.ts';
import type { Member } from '../engines/member.ts';
import type { Pool } from '../engines/pool.ts';

export function listEngines(ctx: LlmProxyContext): Pick<ServiceImpl<typeof ProxyService>, 'listEngines'> {
  return {
    async listEngines(_request, { signal }) {
      const engines = await Promise.all(ctx.engines.pools.map((pool) => toldOf(pool, signal)));
      const { audited } = ctx.tokenMode;
      return { engines: engines.flat(), ...(audited && { audit: reportOf(audited) }) };
    },
  };
}

function reportOf({
  checked,
  matches,
  mismatches,
  missed,
}: AuditCounts): MessageInitShape<typeof AuditReportSchema> {
  const counts = Object.entries(mismatches).map(([where, count]) => [where, BigInt(count)]);
  return {
    checked: BigInt(checked),
    matches: BigInt(matches),
    mismatches: Object.fromEntries(counts),
    missed: BigInt(missed),
  };
}

/** A router that does not answer has no workers. */
async function toldOf(pool: Pool, signal: AbortSignal) {
  const members = await pool.found(signal).catch(() => pool.members);
  return await Promise.all(members.map((member) => told(pool.spec.alias, member, signal)));
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
