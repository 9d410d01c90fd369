// Engines as processes, one of which is killed in the middle of a stream.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { expect } from 'chai';
import { unpackIds } from '../../services/common/columns.ts';
import { promptsOf, readEvents, TestProxy } from '../support/llm-proxy.ts';
import { freePort } from '../support/nats.ts';

const MAIN = new URL('../../examples/scripted-engine/main.ts', import.meta.url).pathname;

async function startEngine(port: number): Promise<ChildProcess> {
  const args = [MAIN, '--port', `${port}`, '--dialect', 'vllm', '--token-ms', '20', '--lifeline'];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'inherit'] });
  for (let i = 0; i < 400 && child.exitCode === null; i++) {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/models`).catch(() => undefined);
    if (answer?.ok) return child;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the engine did not start');
}

describe('llm-proxy with two engine processes', () => {
  it('breaks off what a killed engine was sampling, and goes on at the other one', async () => {
    const ports = [await freePort(), await freePort()];
    const children = await Promise.all(ports.map(startEngine));
    const servers = ports.map((port) => `http://127.0.0.1:${port}`);
    await using proxy = await TestProxy.start({
      engineUrl: '',
      kind: 'vllm',
      inference: { base_url: undefined, servers },
    });
    try {
      const capability = await proxy.admit('s');
      const messages = [{ role: 'user', content: 'Tell me something.' }];
      const answer = await proxy.chat(capability, { messages, stream: true });
      const [{ baseUrl: home } = { baseUrl: '' }] = (await proxy.client.listEngines({})).engines.filter(
        ({ callsInFlight }) => callsInFlight === 1,
      );
      const killed = servers.indexOf(home);
      children[killed]?.kill('SIGKILL');
      const { whole, events } = await readEvents(answer);
      expect({ whole, done: events.includes('[DONE]') }).to.deep.equal({ whole: false, done: false });
      const again = await proxy.chat(capability, { messages, stream: true });
      expect((await readEvents(again)).whole).to.equal(true);
      const [broken, retried] = await proxy.records('s');
      expect(broken).to.include({ finishReason: 'error', errorReason: 'ENGINE_STREAM_CUT', engineUrl: home });
      expect(retried).to.include({ finishReason: 'stop', engineUrl: servers[1 - killed] });
      // The same prompt, and what the first engine had sampled is the beginning of nothing else.
      const [first, second] = promptsOf([broken!, retried!]);
      expect(second).to.deep.equal(first);
      const sampled = [...unpackIds(retried!.sampledIds)];
      expect(sampled.slice(0, broken!.sampledIds.length / 4)).to.deep.equal([
        ...unpackIds(broken!.sampledIds),
      ]);
    } finally {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        const ended = once(child, 'exit');
        child.kill();
        await ended;
      }
    }
  });
});
