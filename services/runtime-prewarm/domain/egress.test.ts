import { expect } from 'chai';
import { EgressPolicy, targetOf, textOf } from './egress.ts';

const NODE = '93.184.216.34';
const policy = new EgressPolicy(
  [
    { host: 'site.test', port: 443 },
    { host: '*.example.com', port: 80 },
    { host: '10.1.0.0/16', port: 8080 },
    { host: '127.0.0.1', port: 9000 },
    { host: '0.0.0.0/0', port: 53 },
    { host: NODE, port: 22 },
  ],
  [NODE, '10.1.0.9'],
);
const listed = (host: string, port: number): string | undefined => policy.listed({ host, port })?.rule;
const open = (host: string, port: number, address = host): string | undefined =>
  policy.open({ host, port }, address)?.rule;

describe('egress policy', () => {
  it('opens what is listed, by name, port and address', () => {
    expect(listed('site.test', 443)).to.equal(undefined);
    expect(listed('a.b.example.com', 80)).to.equal(undefined);
    expect(listed('10.1.255.1', 8080)).to.equal(undefined);
    expect(listed('8.8.8.8', 53)).to.equal(undefined);
  });

  it('denies the rest', () => {
    const others: [string, number][] = [
      ['site.test', 80],
      ['evil-site.test', 443],
      ['site.test.evil.com', 443],
      ['example.com', 80],
      ['evilexample.com', 80],
      ['.example.com', 80],
      ['10.2.0.1', 8080],
      ['1.1.1.1', 443],
      ['anything.org', 53],
    ];
    for (const [host, port] of others) expect(listed(host, port), `${host}:${port}`).to.equal('not_listed');
  });

  it('denies a name that leads inside, unless the list has the address itself', () => {
    expect(open('site.test', 443, '151.101.0.223')).to.equal(undefined);
    for (const address of [
      '127.0.0.1',
      '10.0.0.1',
      '169.254.169.254',
      '::1',
      'fe80::1%eth0',
      '::ffff:10.0.0.1',
    ])
      expect(open('site.test', 443, address), address).to.equal('address_not_public');
    expect(open('a.example.com', 8080, '10.1.3.4')).to.equal(undefined);
    expect(open('localhost', 9000, '127.0.0.1')).to.equal(undefined);
    // A network that is listed for the port opens itself alone.
    expect(open('a.example.com', 8080, '10.2.3.4')).to.equal('address_not_public');
    expect(open('localhost', 9000, '127.0.0.2')).to.equal('address_not_public');
  });

  it('denies addresses inside to a network that is wider than they are', () => {
    expect(open('10.0.0.1', 53)).to.equal('address_not_public');
    expect(open('127.0.0.1', 53)).to.equal('address_not_public');
    expect(open('8.8.8.8', 53)).to.equal(undefined);
  });

  it("denies the node's own addresses, unless the list has the address itself", () => {
    expect(open('site.test', 443, NODE)).to.equal('address_of_node');
    expect(open(NODE, 53)).to.equal('address_of_node');
    expect(open(NODE, 22)).to.equal(undefined);
  });

  it('reads hosts as every client does', () => {
    expect(targetOf('Site.Test:443', 443)).to.eql({ host: 'site.test', port: 443 });
    expect(targetOf('site.test.:8080', 443)).to.eql({ host: 'site.test', port: 8080 });
    expect(targetOf('site.test', 443)).to.eql({ host: 'site.test', port: 443 });
    expect(targetOf('site.test:80', 443)).to.eql({ host: 'site.test', port: 80 });
    for (const [text, host] of [
      ['127.1', '127.0.0.1'],
      ['2130706433', '127.0.0.1'],
      ['0x7f.0.0.1', '127.0.0.1'],
      ['[::ffff:7f00:1]', '::ffff:7f00:1'],
      ['[::1]', '::1'],
    ] as const)
      expect(targetOf(`${text}:80`, 443), text).to.eql({ host, port: 80 });
    for (const text of ['', ':80', 'a:0', 'a:70000', 'a/b:80', 'a@b:80', ':a@b:80', 'a b', 'a?b', '.', '%00'])
      expect(targetOf(text, 443), text).to.equal(undefined);
    expect(textOf({ host: '::1', port: 80 })).to.equal('[::1]:80');
  });
});
