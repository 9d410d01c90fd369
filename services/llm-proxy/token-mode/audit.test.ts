import { expect } from 'chai';
import { AUDITS_WAITING_MAX } from '../../common/limits.ts';
import { Audit } from './audit.ts';
import type { Render } from './renderer.ts';

const job = (render: Render) => ({
  render,
  rendering: { messages: [], tools: [], settings: {} },
  sent: { ids: Int32Array.of(1, 2), tailLength: 1, sampledAt: () => true },
});
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
};

describe('audits beside calls', () => {
  it('count what they find, and those that cannot be rendered', async () => {
    const audit = new Audit(new AbortController().signal);
    audit.add(job(async () => Int32Array.of(1, 2)));
    audit.add(job(async () => Int32Array.of(3, 2)));
    audit.add(job(() => Promise.reject(new Error('not today'))));
    await until(() => audit.counts.missed === 1);
    expect(audit.counts).to.deep.equal({
      checked: 2,
      matches: 1,
      mismatches: { sampled: 1, rendered: 0 },
      missed: 1,
    });
  });

  it('wait one behind the other, and no more of them than there is room for', async () => {
    const audit = new Audit(new AbortController().signal);
    const { promise: held, resolve: release } = Promise.withResolvers<Int32Array>();
    let running = 0;
    const render: Render = () => {
      running++;
      return held.finally(() => running--);
    };
    for (let i = 0; i < AUDITS_WAITING_MAX + 3; i++) audit.add(job(render));
    expect([running, audit.counts.missed]).to.deep.equal([1, 2]);
    release(Int32Array.of(1, 2));
    await until(() => audit.counts.checked === AUDITS_WAITING_MAX + 1);
    expect(audit.counts.matches).to.equal(AUDITS_WAITING_MAX + 1);
  });
});
