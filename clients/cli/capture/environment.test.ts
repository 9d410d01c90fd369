import { expect } from 'chai';
import { agentEnv } from './environment.ts';

const URL = 'http://10.0.0.7:8081/s/key';
const own = { OPENAI_BASE_URL: `${URL}/v1` };

describe('the environment of an agent that runs here', () => {
  it('has what the command has and what the session has, and nothing that opens the mesh or leads elsewhere', () => {
    const inherited = {
      ...{ HOME: '/h', OPENAI_BASE_URL: 'https://elsewhere.example/v1', NOTHING: undefined },
      ...{
        POLAR_TOKEN: 't',
        POLAR_KEY_FILE: 'k',
        ANTHROPIC_AUTH_TOKEN: 'a',
        OPENAI_API_BASE: 'https://x.example',
      },
    };
    expect(agentEnv(inherited, own, URL)).to.deep.equal({ HOME: '/h', ...own });
  });

  it('goes to the mesh directly where there is a proxy for the web', () => {
    const hosts = (inherited: Record<string, string>) => {
      const { no_proxy: lower, NO_PROXY: upper } = agentEnv(inherited, own, URL);
      expect(upper).to.equal(lower);
      return lower;
    };
    const proxy = { HTTP_PROXY: 'http://proxy.example:3128' };
    expect(hosts(proxy)).to.equal('10.0.0.7');
    expect(hosts({ ...proxy, NO_PROXY: 'a.example' })).to.equal('a.example,10.0.0.7');
    expect(hosts({ ...proxy, no_proxy: 'b.example', NO_PROXY: 'a.example' })).to.equal('b.example,10.0.0.7');
    expect(hosts({ ...proxy, no_proxy: '*' })).to.equal('*');
    expect(hosts({})).to.equal(undefined);
    expect(agentEnv(proxy, own, 'http://[::1]:8081/s/key')['no_proxy']).to.equal('::1');
  });
});
