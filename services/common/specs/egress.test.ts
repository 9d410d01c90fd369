import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { NetworkPolicySchema } from '../../../gen/ts/polar/common/v1/network_pb.js';
import { EGRESS_RULES_MAX } from '../limits.ts';
import { checkNetwork, completeNetwork, egressHost } from './egress.ts';
import { Faults } from './faults-of.ts';

describe('egress lists', () => {
  it('take names, names below one, addresses and networks', () => {
    expect(egressHost('site.test')).to.eql({ kind: 'name', name: 'site.test' });
    expect(egressHost('*.example.com')).to.eql({ kind: 'below', suffix: '.example.com' });
    for (const host of ['10.1.0.0/16', '10.1.2.3', '::1', 'fd00::/8', 'registry', 'a-b.c_d.org'])
      expect(egressHost(host), host).to.not.equal(undefined);
  });

  it('take nothing else', () => {
    const wrong = [
      '',
      '*',
      '*.',
      '.org',
      'a..b',
      '-a.org',
      'a b',
      'a/b',
      'http://a',
      'a:80',
      'a.*.b',
      '**.a',
      'ä.de',
    ];
    for (const host of [
      ...wrong,
      '127.1',
      '2130706433',
      '0x7f000001',
      '10.0.0.1/8',
      '*.1',
      `${'a'.repeat(64)}.b`,
    ])
      expect(egressHost(host), host).to.equal(undefined);
  });

  it('have port 443 and small letters', () => {
    const network = create(NetworkPolicySchema, {
      egress: [{ host: 'Site.Test' }],
      prepareEgress: [{ host: 'a.b', port: 80 }],
    });
    completeNetwork(network);
    expect(network.egress[0]).to.deep.include({ host: 'site.test', port: 443 });
    expect(network.prepareEgress[0]).to.deep.include({ host: 'a.b', port: 80 });
  });

  it('name every fault', () => {
    const faults = new Faults();
    const network = create(NetworkPolicySchema, {
      egress: [{ host: 'a b', port: 1 }],
      prepareEgress: [{ host: 'a.b', port: 70_000 }],
    });
    checkNetwork(network, 'runtime.network', faults);
    checkNetwork(
      create(NetworkPolicySchema, {
        egress: Array.from({ length: EGRESS_RULES_MAX + 1 }, () => ({ host: 'a', port: 1 })),
      }),
      'runtime.network',
      faults,
    );
    expect(faults.found.map(({ field }) => field)).to.eql([
      'runtime.network.egress[0].host',
      'runtime.network.prepare_egress[0].port',
      'runtime.network.egress',
    ]);
  });
});
