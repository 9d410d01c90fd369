import { lookup } from 'node:dns/promises';
import { hostname } from 'node:os';
import { expect } from 'chai';
import type { PolarError } from '../../common/errors.ts';
import { CallbackHosts, isPublicAddress } from './callback-hosts.ts';

const fault = (hosts: CallbackHosts, url: string): string | undefined => hosts.fault(new URL(url));

describe('callback hosts', () => {
  const none = new CallbackHosts([]);

  it('are public, unless they are named', () => {
    for (const address of [
      '8.8.8.8',
      '172.15.0.1',
      '172.32.0.1',
      '100.63.0.1',
      '2606:4700::1111',
      '::ffff:8.8.8.8',
    ]) {
      expect(isPublicAddress(address), address).to.equal(true);
    }
    const inside = ['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.31.9.9'];
    inside.push('192.168.0.1', '198.19.0.1', '224.0.0.1', '255.255.255.255', '::', '::1', 'fd00::1');
    inside.push('fe80::1', 'ff02::1', '::ffff:10.0.0.1', '64:ff9b::a00:1', '2002:a00:1::', '2001:0:1::1');
    for (const address of inside) expect(isPublicAddress(address), address).to.equal(false);
  });

  it('are told by addresses, however they are written, and by localhost', () => {
    const refused = ['127.0.0.1:4222', '127.1', '0x7f.1', '2130706433', '[::1]', '[::ffff:10.0.0.1]', '0'];
    refused.push('localhost', 'LOCALHOST.', 'a.localhost:80', '169.254.169.254/latest');
    for (const host of refused) expect(fault(none, `http://${host}`), host).to.match(/is not public/);
    for (const host of ['8.8.8.8', 'example.com', 'localhost.example.com', 'notlocalhost']) {
      expect(fault(none, `https://${host}/hook`), host).to.equal(undefined);
    }
  });

  it('may be named with a port, or for every port', () => {
    const hosts = new CallbackHosts(['127.0.0.1:80', 'Trainer', '[::1]:443']);
    expect(fault(hosts, 'http://127.0.0.1/')).to.equal(undefined);
    expect(fault(hosts, 'http://127.0.0.1:8080/')).to.match(/callback_hosts/);
    expect(fault(hosts, 'https://127.0.0.1/')).to.match(/callback_hosts/);
    expect(fault(hosts, 'https://[::1]/')).to.equal(undefined);
    expect(fault(new CallbackHosts(['localhost']), 'http://localhost:9')).to.equal(undefined);
  });

  it('are looked at again when a name is resolved', async function () {
    const name = hostname();
    const addresses = await lookup(name, { all: true }).catch(() => []);
    if (addresses.length === 0 || addresses.some(({ address }) => isPublicAddress(address))) this.skip();
    const resolved = (hosts: CallbackHosts): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const look = hosts.lookupFor(new URL(`http://${name}`));
        look(name, { all: true }, (error, found) => (error ? reject(error) : resolve(found)));
      });
    const refused = await resolved(none).catch((error) => error as PolarError);
    expect((refused as PolarError).reason).to.equal('CALLBACK_REFUSED');
    expect(await resolved(new CallbackHosts([name]))).to.deep.equal(addresses);
  });
});
