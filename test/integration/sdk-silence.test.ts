// The official clients read streams with silences in them, before the first event and amid the others.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { expect } from 'chai';
import OpenAI from 'openai';
import { sleep } from '../../services/common/clock.ts';
import type { StreamWriter } from '../../services/llm-proxy/dialects/dialect.ts';
import { dialectOf } from '../../services/llm-proxy/dialects/dialects.ts';
import type { JsonObject } from '../../services/llm-proxy/domain/json.ts';
import { readPath } from '../../services/llm-proxy/domain/paths.ts';
import { EventRelay } from '../../services/llm-proxy/http/event-relay.ts';

const SILENCE_MS = 10;
const PIECES = ['after ', 'long\u2028', ' silences'];
const SAID = PIECES.join('');

const CLIENTS: Readonly<Record<string, (url: string) => Promise<string>>> = {
  'openai-chat': async (url) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'unused', maxRetries: 0 });
    const stream = client.chat.completions.stream({
      model: 'alias',
      messages: [{ role: 'user', content: 'x' }],
    });
    return (await stream.finalContent()) ?? '';
  },
  'openai-responses': async (url) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'unused', maxRetries: 0 });
    return (await client.responses.stream({ model: 'alias', input: 'x' }).finalResponse()).output_text;
  },
  'anthropic-messages': async (url) => {
    const client = new Anthropic({ baseURL: url, apiKey: 'unused', maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'x' }];
    return client.messages.stream({ model: 'alias', max_tokens: 9, messages }).finalText();
  },
  'google-generate': async (url) => {
    const client = new GoogleGenAI({ apiKey: 'unused', httpOptions: { baseUrl: url } });
    let text = '';
    for await (const piece of await client.models.generateContentStream({ model: 'alias', contents: 'x' }))
      text += piece.text ?? '';
    return text;
  },
};

describe('silence', () => {
  for (const [name, ask] of Object.entries(CLIENTS)) {
    it(`is nothing to a client of ${name}`, async () => {
      const server = createServer((request, response) => void replyTo(request, response)).listen(
        0,
        '127.0.0.1',
      );
      await once(server, 'listening');
      const { port } = server.address() as { port: number };
      try {
        expect(await ask(`http://127.0.0.1:${port}`)).to.equal(SAID);
      } finally {
        server.close();
        server.closeAllConnections();
      }
    });
  }
});

/** Each piece after two fillers. */
async function replyTo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { target } = readPath(request.url ?? '', request.headers);
  if (target.kind !== 'generate') return void response.writeHead(404).end();
  const writer = dialectOf(target.dialect)
    .read(await bodyOf(request), target)
    .writer('alias')
    .stream();
  let fillers = 0;
  const filling: StreamWriter = {
    contentType: writer.contentType,
    keepAlive: () => {
      fillers++;
      return writer.keepAlive();
    },
    chunk: (chunk) => writer.chunk(chunk),
    end: () => writer.end(),
    failed: (error) => writer.failed(error),
  };
  using relay = new EventRelay(response, filling, SILENCE_MS);
  for (const content of PIECES) {
    for (const before = fillers; fillers < before + 2; ) await sleep(SILENCE_MS);
    const delta = { role: 'assistant', content };
    const chunk = { id: 'r', choices: [{ index: 0, delta, finish_reason: null }] };
    await relay.send(writer.chunk(chunk), new AbortController().signal);
  }
  const last = { id: 'r', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
  relay.end(writer.chunk(last) + writer.end());
}

async function bodyOf(request: IncomingMessage): Promise<JsonObject> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as JsonObject;
}
