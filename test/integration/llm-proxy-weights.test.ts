// What an engine tells of its weights, against what the trainer has published.
import { expect } from 'chai';
import { PolicyService } from '../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { plainBehaviour, WireEngine } from '../support/wire-engine.ts';

describe('versions of calls', () => {
  let engine: WireEngine;
  let proxy: TestProxy;
  before(async () => {
    engine = await WireEngine.start('sglang');
    proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'sglang' });
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  /** What the record of a call says, whose engine calls its weights so. */
  const recorded = async (session: string, told: string): Promise<bigint | undefined> => {
    engine.behaviour = { ...plainBehaviour(), weightVersion: told };
    const capability = await proxy.admit(session);
    const { status } = await proxy.chat(capability, { messages: [{ role: 'user', content: 'x' }] });
    expect(status).to.equal(200);
    const [record] = await proxy.records(session);
    expect(record?.weightVersion).to.equal(told);
    return record?.policyVersion;
  };

  it('are those that were published where nobody has named the weights, at the engine or to the mesh', async () => {
    const policy = createPlainClient(PolicyService, proxy.url);
    expect(await recorded('none-yet', 'default')).to.equal(0n);
    await policy.publishVersion({ policyVersion: 5n });
    expect(await recorded('unnamed', 'default')).to.equal(5n);
    expect(await recorded('by-number', '4')).to.equal(4n);
    expect(await recorded('by-another-name', 'step-4')).to.equal(0n);
    await policy.publishVersion({ policyVersion: 6n, weightVersion: 'step-6' });
    expect(await recorded('not-yet-there', 'default')).to.equal(0n);
    expect(await recorded('by-name', 'step-6')).to.equal(6n);
  });
});
