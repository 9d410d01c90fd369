import OpenAI from 'openai';
import { TestProxy } from './support/llm-proxy.ts';
const [, , kind, url] = process.argv as unknown as [string, string, 'vllm' | 'sglang' | 'llamacpp', string];
const proxy = await TestProxy.start({ engineUrl: url, kind });
try {
  const secret = await proxy.admit('live');
  const client = new OpenAI({ baseURL: `${proxy.url}/s/${secret}/v1`, apiKey: 'x', maxRetries: 0 });
  const show = (what: string, value: unknown) => console.log(what, JSON.stringify(value)?.slice(0, 600));
  const attempt = async (what: string, run: () => Promise<unknown>) => {
    try { show(what, await run()); } catch (error) { show(`${what} FAILED`, String(error)); }
  };
  const tools: any = [{ type: 'function', name: 'f', description: 'd', parameters: { type: 'object', properties: {} } }, { type: 'custom', name: 'patch' }];
  await attempt('count', () => client.responses.inputTokens.count({ model: 'x', input: 'hi', tools } as never));
  await attempt('tokenize', async () => (await fetch(`${proxy.url}/s/${secret}/tokenize`, { method: 'POST', body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }] }) })).json());
  await attempt('tokenize text', async () => (await fetch(`${proxy.url}/s/${secret}/tokenize`, { method: 'POST', body: JSON.stringify({ prompt: 'hi' }) })).json());
  await attempt('responses', () => client.responses.create({ model: 'x', input: 'hi', tools, max_output_tokens: 12, temperature: 0, reasoning: { effort: 'none' } }));
  await attempt('responses stream', async () => { const s = client.responses.stream({ model: 'x', input: 'hi', tools, max_output_tokens: 12, temperature: 0, reasoning: { effort: 'none' } }); const types: string[] = []; s.on('event', (e) => types.push(e.type)); const r = await s.finalResponse(); return { types: [...new Set(types)], r: r.output, u: r.usage }; });
  await attempt('chat', () => client.chat.completions.create({ model: 'x', messages: [{ role: 'developer', content: 'brief' }, { role: 'user', content: 'hi' }], max_completion_tokens: 8, n: 2, temperature: 0, logprobs: true, top_logprobs: 2 }));
  await attempt('chat stream', async () => { const s = client.chat.completions.stream({ model: 'x', messages: [{ role: 'user', content: 'hi' }], max_tokens: 8, temperature: 0, n: 2 }); return (await s.finalChatCompletion()).choices; });
  const history = (args: string): any => [{ role: 'user', content: 'hi' }, { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: args } }] }, { role: 'tool', tool_call_id: 'a', content: 'x' }];
  for (const args of ['{broken', '[1]', '']) await attempt(`arguments ${args}`, () => client.chat.completions.create({ model: 'x', messages: history(args), max_tokens: 2 }));
  await attempt('reasoning in history', () => client.responses.create({ model: 'x', max_output_tokens: 2, input: [{ role: 'user', content: 'hi' }, { type: 'reasoning', id: 'rs', summary: [], content: [{ type: 'reasoning_text', text: 'I think' }] }, { role: 'assistant', content: 'so' }, { role: 'user', content: 'go' }] as never }));
  await attempt('parts', () => client.responses.create({ model: 'x', max_output_tokens: 2, input: [{ role: 'user', content: [{ type: 'input_text', text: 'a' }, { type: 'input_text', text: 'b' }] }] }));
  await attempt('overflow', () => client.responses.create({ model: 'x', max_output_tokens: 2, input: 'word '.repeat(20000) }));
  await attempt('overflow stream', async () => await client.responses.stream({ model: 'x', max_output_tokens: 2, input: 'word '.repeat(20000) }).finalResponse());
  await attempt('json schema', () => client.responses.create({ model: 'x', input: 'hi', max_output_tokens: 40, text: { format: { type: 'json_schema', name: 's', schema: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] } } } }));
  await attempt('legacy', () => client.chat.completions.create({ model: 'x', messages: [{ role: 'user', content: 'hi' }], functions: [{ name: 'f', parameters: { type: 'object', properties: {} } }], function_call: { name: 'f' }, max_tokens: 40 }));
  await attempt('custom forced', () => client.responses.create({ model: 'x', input: 'hi', tools, tool_choice: { type: 'custom', name: 'patch' }, max_output_tokens: 40 }));
} finally { await proxy[Symbol.asyncDispose](); }
process.exit(0);
