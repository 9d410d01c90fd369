// Engines as processes, one of which is killed in the middle of a stream.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { unpackIds } from '../../services/common/columns.ts';
import { programOf } from '../../tools/built.mjs';
import { eventually } from '../support/eventually.ts';
import { promptsOf, readEvents, TestProxy } from '../support/llm-proxy.ts';
import { freePort } from '../support/nats.ts';

const MAIN = programOf(join(import.meta.dirname, '../../examples/scripted-engine/main.ts'));

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

/** Two engines and a proxy in front of them. */
async function withEngines(
  work: (proxy: TestProxy, servers: string[], children: ChildProcess[]) => Promise<void>,
): Promise<void> {
  const ports = [await freePort(), await freePort()];
  const children = await Promise.all(ports.map(startEngine));
  const servers = ports.map((port) => `http://127.0.0.1:${port}`);
  const inference = { base_url: undefined, servers };
  await using proxy = await TestProxy.start({ engineUrl: '', kind: 'vllm', inference });
  try {
    await work(proxy, servers, children);
  } finally {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
  }
}

describe('llm-proxy with two engine processes', () => {
  const messages = [{ role: 'user', content: 'Tell me something.' }];

  it('breaks off what a killed engine was sampling, and goes on at the other one', async () => {
    await withEngines(async (proxy, servers, children) => {
      const capability = await proxy.admit('s');
      const answer = await proxy.chat(capability, { messages, stream: true });
      const { engines } = await proxy.client.listEngines({});
      const home = engines.find(({ callsInFlight }) => callsInFlight === 1)?.baseUrl ?? '';
      const killed = servers.indexOf(home);
      children[killed]?.kill('SIGKILL');
      const { whole, events } = await readEvents(answer);
      expect({ whole, done: events.includes('[DONE]') }).to.deep.equal({ whole: false, done: false });
      const again = await proxy.chat(capability, { messages, stream: true });
      expect((await readEvents(again)).whole).to.equal(true);
      const [broken, retried] = await proxy.records('s');
      expect(broken).to.include({ finishReason: 'error', errorReason: 'ENGINE_STREAM_CUT', engineUrl: home });
      expect(retried).to.include({ finishReason: 'stop', engineUrl: servers[1 - killed] });
      const [first, second] = promptsOf([broken!, retried!]);
      expect(second).to.deep.equal(first);
      const [lost, sampled] = [broken!, retried!].map(({ sampledIds }) => [...unpackIds(sampledIds)]);
      expect(lost).to.not.have.length(0);
      // The engine samples the same for the same prompt.
      expect(sampled!.slice(0, lost!.length)).to.deep.equal(lost);
    });
  });

  it('asks the other engine what one that hangs has not begun to answer, streamed or not', async () => {
    await withEngines(async (proxy, servers, [hanging]) => {
      const ask = async (session: string): Promise<number> => {
        const body = { messages, max_tokens: 1, stream: session.startsWith('streamed') };
        const answer = await proxy.chat(await proxy.admit(session), body);
        await answer.arrayBuffer();
        return answer.status;
      };
      const sessions = ['whole-0', 'streamed-0', 'whole-1', 'streamed-1'];
      // The names of the models are known then.
      for (const session of sessions) expect(await ask(session)).to.equal(200);
      hanging?.kill('SIGSTOP');
      expect(await Promise.all(sessions.map(ask))).to.deep.equal([200, 200, 200, 200]);
      const records = await Promise.all(sessions.map((session) => proxy.records(session)));
      const [before, after] = [0, 1].map((i) => records.map((ofSession) => ofSession[i]!));
      expect(new Set(before!.map(({ engineUrl }) => engineUrl))).to.deep.equal(new Set(servers));
      expect(after!.map(({ engineUrl }) => engineUrl)).to.deep.equal(Array(4).fill(servers[1]));
      expect(after!.filter(({ engineTries }) => engineTries > 1)).to.have.length(2);
    });
  });

  it('finds out that an engine hangs, and that it is back', async () => {
    await withEngines(async (proxy, servers, [hanging]) => {
      hanging?.kill('SIGSTOP');
      let sessions = 0;
      const ask = async (): Promise<string | undefined> => {
        const session = `s${sessions++}`;
        const leave = AbortSignal.timeout(2_000);
        const answer = await proxy
          .chat(await proxy.admit(session), { messages, max_tokens: 1 }, { signal: leave })
          .catch(() => undefined);
        await answer?.arrayBuffer().catch(() => {});
        return answer && (await proxy.records(session))[0]?.engineUrl;
      };
      const used = async (): Promise<Set<string | undefined>> =>
        new Set([await ask(), await ask(), await ask()]);
      for (let i = 0; i < 20 && (await used()).has(undefined); i++);
      // Without a call that had to wait for it.
      expect(await used()).to.deep.equal(new Set([servers[1]]));
      hanging?.kill('SIGCONT');
      await eventually('it is back', async () => (await used()).has(servers[0]));
    });
  }).timeout(120_000);
});
