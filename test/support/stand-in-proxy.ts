// In the LLM proxy's place, for tests of what stands before it: closes sessions, and answers chat calls with a script.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { type Capability, CapabilitySchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import {
  type CloseSessionResponseSchema,
  ProxyService,
} from '../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { PolarError } from '../../services/common/errors.ts';
import { sha256 } from '../../services/common/ids.ts';
import type { Bus } from '../../services/common/nats/bus.ts';
import { startServer } from '../../services/common/server.ts';
import type { TestNode } from './node.ts';

export interface StandInProxy extends AsyncDisposable {
  /** Attempts that were closed: `<session>.<attempt>`. */
  readonly closed: readonly string[];
  /** Capability and body of each chat call. */
  readonly calls: readonly { capability: Capability | undefined; body: ChatRequest }[];
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly { role: string; content: unknown }[];
}

export interface StandInOptions {
  readonly node: Pick<TestNode, 'bus' | 'ports' | 'proxySocket'>;
  /** What closing a session answers. */
  readonly closing?: (key: string) => MessageInitShape<typeof CloseSessionResponseSchema>;
  /** Closings that are refused first. */
  readonly refuse?: number;
  /** The assistant's turn. */
  readonly reply?: (request: ChatRequest) => object;
}

export async function startStandInProxy(options: StandInOptions): Promise<StandInProxy> {
  const { bus, ports, proxySocket } = options.node;
  const closed: string[] = [];
  const calls: { capability: Capability | undefined; body: ChatRequest }[] = [];
  let refuse = options.refuse ?? 0;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as ChatRequest;
    calls.push({ capability: await capabilityOf(bus, request.url ?? ''), body });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of chunksOf(options.reply?.(body) ?? { content: 'done' })) {
      response.write(`data: ${JSON.stringify(event)}\n\n`);
    }
    response.end('data: [DONE]\n\n');
  };
  const server = await startServer({
    host: '127.0.0.1',
    port: ports['llm-proxy'],
    httpSocket: proxySocket,
    services: [ProxyService.typeName],
    routes: (router) =>
      router.service(ProxyService, {
        closeSession: ({ sessionId, attempt }) => {
          if (refuse-- > 0) throw new PolarError('RECORD_NOT_WRITTEN', 'not now');
          const key = `${sessionId}.${attempt}`;
          closed.push(key);
          return options.closing?.(key) ?? { calls: calls.length };
        },
        listEngines: () => ({}),
      }),
    http: (request, response) => {
      void answer(request, response);
      return true;
    },
  });
  return { closed, calls, [Symbol.asyncDispose]: () => server.close() };
}

/** The attempt whose stored digest the address matches. */
async function capabilityOf(bus: Bus, url: string): Promise<Capability | undefined> {
  const digest = sha256(/^\/s\/([^/]+)\/v1\/chat\/completions$/.exec(url)?.[1] ?? '');
  const bucket = await bus.kv('capabilities');
  for await (const key of await bucket.keys()) {
    const entry = await bucket.get(key);
    if (entry === null || entry.operation !== 'PUT') continue;
    const capability = fromBinary(CapabilitySchema, entry.value);
    if (capability.digest === digest) return capability;
  }
  return undefined;
}

function chunksOf(delta: object): object[] {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'policy' };
  const finish_reason = 'tool_calls' in delta ? 'tool_calls' : 'stop';
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  return [
    { ...head, choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason }] },
    { ...head, choices: [], usage },
  ];
}
