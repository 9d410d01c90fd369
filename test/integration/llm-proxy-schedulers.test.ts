// Schedulers before the engines, over a restart of the proxy.
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import { eventually } from '../support/eventually.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { RawEngine } from '../support/raw-engine.ts';

const MESSAGES = [{ role: 'user', content: 'x' }];
const RELEASE = '/programs/release';
const CHOICE = { index: 0, message: { role: 'assistant', content: 'done' }, finish_reason: 'stop' };

describe('llm-proxy before a ThunderAgent', () => {
  it('tells the end of programs that began before a restart, once, and of no other node’s', async () => {
    await using scheduler = await RawEngine.start(({ path }) => ({
      body: path === RELEASE ? { released: true } : { choices: [CHOICE] },
    }));
    await using proxy = await TestProxy.start({
      engineUrl: scheduler.url,
      kind: 'openai',
      modelServed: 'm',
      inference: { scheduler: 'thunderagent' },
    });
    for (const session of ['closed', 'revoked']) {
      const answer = await proxy.chat(await proxy.admit(session), { messages: MESSAGES });
      expect(answer.status).to.equal(200);
    }
    await proxy.admit('other', 1, { ref: { sessionId: 'other', attempt: 1, nodeId: 'n2' } });
    await proxy.stopHere();
    await proxy.startHere();
    for (let i = 0; i < 2; i++) await proxy.client.closeSession({ sessionId: 'closed', attempt: 1 });
    for (const session of ['closed', 'other', 'revoked']) await proxy.revoke(session);
    const released = (): string[] => scheduler.at(RELEASE).map(({ body }) => body.program_id);
    await eventually('both are released', () => released().length >= 2);
    await sleep(100);
    expect(released().sort()).to.deep.equal(['n1:closed.1', 'n1:revoked.1']);
  });
});
