// Composition root: what routes and the HTTP side get.
import type { Client } from '@connectrpc/connect';
import { EvaluatorService } from '../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import type { Capability } from '../../gen/ts/polar/event/v1/work_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { createPlainClient } from '../common/client.ts';
import { localUrl } from '../common/config/public-url.ts';
import type { Logger } from '../common/logger.ts';
import { createBlobStore } from '../common/nats/blobs.ts';
import { openBus } from '../common/nats/bus.ts';
import { Attempts } from './attempts/attempts.ts';
import { type AttemptKey, RecordLog } from './attempts/record-log.ts';
import { Coalescer } from './calls/coalescer.ts';
import { LoopShares } from './calls/loop-shares.ts';
import type { LlmProxyConfig } from './config.ts';
import { Capabilities } from './consumers/capabilities.ts';
import { Engines } from './engines/engines.ts';
import { tellPressure } from './engines/pressure.ts';
import { endSession } from './engines/session-end.ts';
import { capabilityRevoked } from './events.ts';
import { showEngines } from './metrics.ts';
import { Policies } from './policy/policies.ts';
import { TokenMode } from './token-mode/token-mode.ts';

export interface LlmProxyContext extends AsyncDisposable {
  readonly config: LlmProxyConfig;
  readonly log: Logger;
  /** Aborts when the service stops; calls in flight go on for STOP_GRACE_MS. */
  readonly stopping: AbortSignal;
  readonly engines: Engines;
  readonly capabilities: Capabilities;
  readonly attempts: Attempts;
  readonly coalescer: Coalescer;
  readonly loopShares: LoopShares;
  readonly policies: Policies;
  readonly tokenMode: TokenMode;
  /** The node's harness-executor. */
  readonly harnesses: Client<typeof HarnessService>;
  /** The node's evaluator, asked with what its caller shows. */
  readonly evaluator: Client<typeof EvaluatorService>;
}

export async function createContext(
  config: LlmProxyConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<LlmProxyContext> {
  await using opened = new AsyncDisposableStack();
  const bus = await openBus({ ...config.nats, name: `llm-proxy-${config.node.id}`, signal, log });
  opened.defer(() => bus.close());
  const engines = opened.use(new Engines(config.pools, config.node.id));
  opened.use(showEngines(engines));
  const closed = new AbortController();
  opened.defer(() => closed.abort());
  let capabilities: Capabilities | undefined;
  const isNew = (key: AttemptKey): boolean => capabilities?.isNew(key) ?? false;
  const attempts = new Attempts(new RecordLog(bus, createBlobStore(bus), closed.signal, isNew));
  const onRevoked = ({ ref }: Capability): void => {
    if (ref === undefined) return;
    capabilityRevoked(log, ref);
    void attempts.revoke(ref).finally(() => endSession(engines, log, ref));
  };
  const watched = AbortSignal.any([signal, closed.signal]);
  const tokenMode = new TokenMode(config.node.inference, log, closed.signal);
  capabilities = await Capabilities.watch({ bus, log, signal: watched, onRevoked });
  for (const { ref } of capabilities.all) if (ref?.nodeId === config.node.id) engines.mayKnow(ref);
  const policies = opened.use(await Policies.open({ bus, log, nodeId: config.node.id, signal: watched }));
  if (config.node.inference.min_sessions !== null) {
    void tellPressure({ bus, log, nodeId: config.node.id, pool: engines.pool(''), signal: watched });
  }
  const harnessUrl = localUrl(config.topology, config.node.harness_executor_port);
  const evaluatorUrl = localUrl(config.topology, config.node.evaluator_port);
  const credentials = { token: config.token, tls: config.tls };
  const all = opened.move();
  return {
    config,
    log,
    stopping: signal,
    engines,
    capabilities,
    attempts,
    coalescer: new Coalescer(),
    loopShares: new LoopShares(),
    policies,
    tokenMode,
    harnesses: createPlainClient(HarnessService, harnessUrl, credentials),
    evaluator: createPlainClient(EvaluatorService, evaluatorUrl, { tls: config.tls }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
