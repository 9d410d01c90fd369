// The HTTP server of the scripted engine.
import { Buffer } from 'node:buffer';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { handleChat, handleCompletion, handleGenerate } from './chat.ts';
import type { Body } from './dialects/dialect.ts';
import { derendered } from './dialects/vllm-derender.ts';
import { rendered } from './dialects/vllm-tokens.ts';
import { createEngine, type Engine, type EngineOptions } from './engine.ts';
import { RequestFault } from './faults.ts';
import { readChat, readDerender, readDetokenize, readNewVersion, readTokenize } from './request.ts';
import { loadModel } from './tokenizer/tokenizer.ts';

const BODY_BYTES_MAX = 32 * 1024 * 1024;

export interface RunningEngine extends AsyncDisposable {
  readonly url: string;
}

/** Listens on 127.0.0.1 unless `host` says otherwise; port 0 takes a free one. */
export async function startEngine(
  options: EngineOptions & { readonly port: number; readonly host?: string },
): Promise<RunningEngine> {
  const engine = createEngine(options, loadModel());
  const server = createServer((request, response) => void handle(engine, request, response));
  const host = options.host ?? '127.0.0.1';
  server.listen(options.port, host);
  await once(server, 'listening');
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, 'close');
    },
  };
}

async function handle(engine: Engine, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const body = await readBody(request);
    const path = (request.url ?? '/').split('?')[0];
    const generate = request.method === 'POST' ? generating(engine, path ?? '') : undefined;
    if (generate !== undefined) return await generate(engine, body, request, response);
    send(response, 200, answerOf(engine, `${request.method} ${path}`, body));
  } catch (error) {
    refuse(engine, response, error);
  }
}

/** What generates; undefined: nothing of this engine at the path does. */
function generating({ options }: Engine, path: string): typeof handleChat | undefined {
  const { name } = options.dialect;
  if (path === '/v1/chat/completions') return handleChat;
  if (path === '/inference/v1/generate' && name === 'vllm') return handleGenerate;
  return path === '/completion' && name === 'llamacpp' ? handleCompletion : undefined;
}

function answerOf(engine: Engine, route: string, body: string): Body | string {
  const { options, model } = engine;
  const contextTokens = options.switches.context_tokens;
  switch (route) {
    case 'GET /health':
    case 'GET /health_generate':
      return '';
    case 'GET /v1/models':
      return {
        object: 'list',
        data: [options.dialect.model(options.modelName, contextTokens, engine.created)],
      };
    case 'POST /tokenize':
      return tokenize(engine, body);
    case 'POST /detokenize':
      return { prompt: model.tokenizer.decode(readDetokenize(body)) };
    case 'POST /v1/chat/completions/render':
      if (!isVllm(engine)) break;
      return rendered(engine, readChat(body));
    case 'POST /v1/chat/completions/derender':
      if (!isVllm(engine)) break;
      return derendered(engine, readDerender(body));
    case 'POST /apply-template':
      if (options.dialect.name !== 'llamacpp') break;
      return { prompt: engine.prompts.text(readChat(body), options.switches) };
    case 'GET /weight_info':
      return { weight_version: engine.weightVersion };
    case 'POST /update_weight_version':
      engine.weightVersion = readNewVersion(body);
      return { success: true, message: 'Weight version updated', new_version: engine.weightVersion };
    case 'GET /stats':
      return engine.stats;
  }
  throw new RequestFault(404, 'Not Found');
}

const isVllm = ({ options }: Engine): boolean => options.dialect.name === 'vllm';

function tokenize({ options, model, prompts }: Engine, body: string): Body {
  const request = readTokenize(body);
  const tokens =
    typeof request === 'string' ? model.tokenizer.encode(request) : prompts.ids(request, options.switches);
  return { count: tokens.length, max_model_len: options.switches.context_tokens, tokens, token_strs: null };
}

/** Throws a 413. */
async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    sizeBytes += part.length;
    if (sizeBytes > BODY_BYTES_MAX)
      throw new RequestFault(413, `the body is larger than ${BODY_BYTES_MAX} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function refuse(engine: Engine, response: ServerResponse, error: unknown): void {
  if (response.destroyed) return;
  if (response.headersSent) return void response.destroy();
  const fault = error instanceof RequestFault ? error : new RequestFault(500, String(error));
  engine.stats.failed++;
  if (fault.status === 429) response.setHeader('retry-after', '1');
  send(response, fault.status, engine.options.dialect.error(fault));
}

function send(response: ServerResponse, status: number, body: Body | string): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json' }).end(text);
}
