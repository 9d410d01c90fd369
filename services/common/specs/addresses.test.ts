import { expect } from 'chai';
import { contains, parseAddress, parseNetwork, specialBlockOf } from './addresses.ts';

const blockOf = (text: string): string | undefined => {
  const network = parseNetwork(text);
  if (network === undefined) throw new Error(`${text} is no network`);
  return specialBlockOf(network);
};

describe('addresses', () => {
  it('reads addresses in every form, and nothing else', () => {
    expect(parseAddress('10.0.0.1')).to.eql({ version: 4, value: 0x0a000001n });
    expect(parseAddress('::ffff:10.0.0.1')).to.eql({ version: 4, value: 0x0a000001n });
    expect(parseAddress('::FFFF:a00:1')).to.eql({ version: 4, value: 0x0a000001n });
    expect(parseAddress('::1')).to.eql({ version: 6, value: 1n });
    expect(parseAddress('2606:4700::1111')).to.eql({
      version: 6,
      value: 0x26064700000000000000000000001111n,
    });
    for (const text of [
      '',
      '10.0.0',
      '10.0.0.256',
      '010.0.0.1',
      '0x7f.1',
      '127.1',
      'fe80::1%eth0',
      ':::',
      'a.b',
    ])
      expect(parseAddress(text), text).to.equal(undefined);
  });

  it('reads networks whose address is their first', () => {
    expect(parseNetwork('10.0.0.0/8')).to.deep.include({ prefix: 8 });
    expect(parseNetwork('10.1.2.3')).to.deep.include({ prefix: 32 });
    expect(parseNetwork('0.0.0.0/0')).to.deep.include({ prefix: 0 });
    for (const text of ['10.0.0.1/8', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '::/129', 'x/8'])
      expect(parseNetwork(text), text).to.equal(undefined);
  });

  it('tells what a network holds', () => {
    const network = parseNetwork('10.1.0.0/16');
    if (network === undefined) throw new Error('no network');
    const holds = (text: string): boolean =>
      contains(network, parseAddress(text) ?? { version: 6, value: 0n });
    expect([holds('10.1.255.255'), holds('10.2.0.0'), holds('::a01:1')]).to.eql([true, false, false]);
  });

  it('tells what is not public', () => {
    const special = {
      loopback: ['127.0.0.1', '127.8.8.8', '::1'],
      'link-local': ['169.254.169.254', 'fe80::1'],
      private: ['10.0.0.1', '172.31.0.1', '192.168.1.1', '100.64.0.1', 'fd00::1', '10.1.0.0/16'],
      multicast: ['224.0.0.1', 'ff02::1'],
      reserved: [
        '0.0.0.0',
        '255.255.255.255',
        '192.0.2.1',
        '::',
        '64:ff9b::a00:1',
        '2002:a00:1::',
        '2001:0::1',
      ],
    };
    for (const [what, texts] of Object.entries(special))
      for (const text of texts) expect(blockOf(text), text).to.equal(what);
    for (const text of [
      '1.1.1.1',
      '172.32.0.1',
      '2606:4700::1111',
      '0.0.0.0/0',
      '8.0.0.0/5',
      '::/0',
      '2000::/3',
    ])
      expect(blockOf(text), text).to.equal(undefined);
  });
});
