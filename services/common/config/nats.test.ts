import { expect } from 'chai';
import type { FieldFault, PolarError } from '../errors.ts';
import { natsAddress, natsOf } from './nats.ts';
import { parseTopology } from './topology.ts';

const natsIn = (given: object) => parseTopology(JSON.stringify({ nats: given }), 'topology.yaml').nats;
const faultsOf = (call: () => unknown): readonly FieldFault[] => {
  try {
    call();
  } catch (error) {
    return (error as PolarError).fields;
  }
  return [];
};

describe('the address of NATS', () => {
  it('gives its login apart, whatever form it has', () => {
    const logins: [string, string, object | undefined][] = [
      ['nats://h:1', 'nats://h:1', undefined],
      ['nats://a:1, b:2', 'nats://a:1,nats://b:2', undefined],
      ['tls://u:p%40%2F@h:1/', 'tls://h:1', { user: 'u', password: 'p@/' }],
      ['nats://t0ken@[::1]:1', 'nats://[::1]:1', { token: 't0ken' }],
      ['nats://u:p@a:1,nats://u:p@b:2', 'nats://a:1,nats://b:2', { user: 'u', password: 'p' }],
      ['nats://u:p@a:1,b:2', 'nats://a:1,nats://b:2', { user: 'u', password: 'p' }],
    ];
    for (const [url, shown, login] of logins) {
      const address = natsAddress(url);
      expect(address.shown).to.equal(shown);
      expect(address.credentials?.read(), url).to.deep.equal(login);
      expect(JSON.stringify(address), url).not.to.match(/t0ken|p@/);
    }
  });

  it('says nothing of a login where it cannot be read', () => {
    const wrong = [
      'nats://u:s3cret/x@h',
      'nats://u:s3cret#x@h:1',
      'nats://u:5,3cret@h:1',
      'nats://u:%s3cret@h',
      'nats://:s3cret@h',
    ];
    const two = ['nats://u:s3cret@a,nats://u:0ther@b', 'nats://a,nats://u:s3cret@b'];
    for (const url of [...wrong, ...two]) {
      const faults = faultsOf(() => natsIn({ url }));
      expect(
        faults.map(({ field }) => field),
        url,
      ).to.deep.equal(['nats.url']);
      expect(JSON.stringify(faults)).not.to.match(/3cret|0ther/);
      const [fault] = faultsOf(() => natsOf(natsIn({}), { POLAR_NATS_URL: url }));
      expect(fault?.field).to.equal('POLAR_NATS_URL');
      expect(fault?.description).not.to.match(/3cret|0ther/);
    }
  });
});

describe('the login at NATS', () => {
  it('comes from variables or a file that the topology names, and the address before them', () => {
    const url = 'nats://h:1';
    const env = { PASS: 's3cret', TOKEN: 't0ken' };
    const read = (given: object, more = {}) =>
      natsOf(natsIn({ url, ...given }), { ...env, ...more }).credentials;
    expect(read({})).to.equal(undefined);
    const byPassword = read({ user: 'u', password_env: 'PASS' });
    expect(byPassword?.read()).to.deep.equal({ user: 'u', password: 's3cret' });
    expect(JSON.stringify(byPassword)).not.to.contain('s3cret');
    expect(read({ token_env: 'TOKEN' })?.read()).to.deep.equal({ token: 't0ken' });
    const over = { POLAR_NATS_URL: 'nats://other@h:1' };
    expect(read({ token_env: 'TOKEN' }, over)?.read()).to.deep.equal({ token: 'other' });
    expect(() => read({ creds_file: '/gone.creds' })?.read()).to.throw('/gone.creds');
  });

  it('has one way, and all of it', () => {
    const url = 'nats://h:1';
    const wrong: [string, object][] = [
      ['nats.password_env', { url, user: 'u' }],
      ['nats.password_env', { url, password_env: 'P' }],
      ['nats.token_env', { url, user: 'u', password_env: 'P', token_env: 'T' }],
      ['nats.creds_file', { url: 'nats://u:p@h:1', creds_file: 'f' }],
    ];
    for (const [field, given] of wrong) {
      expect(
        faultsOf(() => natsIn(given)).map((one) => one.field),
        field,
      ).to.deep.equal([field]);
    }
    const unset = faultsOf(() => natsOf(natsIn({ url, token_env: 'TOKEN' }), {}));
    expect(unset).to.deep.equal([
      { field: 'TOKEN', description: 'must be set, as nats.token_env of the topology names it' },
    ]);
  });
});
