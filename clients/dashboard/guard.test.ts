import { expect } from 'chai';
import { isLoopback, loopbackHosts, needsPassword, refusalOf } from './guard.ts';

const guard = { hosts: loopbackHosts(8090), password: undefined };
const json = { 'content-type': 'application/json' };
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('dashboard guard', () => {
  const statusOf = (...args: Parameters<typeof refusalOf>): number => refusalOf(...args)?.status ?? 200;

  it('knows no name but those of this machine for itself', () => {
    for (const host of ['127.0.0.1:8090', 'localhost:8090', 'LOCALHOST:8090', '[::1]:8090']) {
      expect(statusOf(guard, 'GET', { host }), host).to.equal(200);
    }
    for (const host of [undefined, '', 'evil.example:8090', '127.0.0.1:8091', '127.0.0.1', 'localhost']) {
      expect(statusOf(guard, 'GET', host === undefined ? {} : { host }), host).to.equal(421);
    }
  });

  it('takes calls of its own page only', () => {
    const host = '127.0.0.1:8090';
    const call = (headers: object): number => statusOf(guard, 'POST', { host, ...headers });
    expect(call(json)).to.equal(200);
    expect(call({ 'content-type': 'application/connect+json' })).to.equal(200);
    expect(call({ ...json, 'sec-fetch-site': 'same-origin' })).to.equal(200);
    expect(call({ ...json, origin: 'http://127.0.0.1:8090' })).to.equal(200);
    expect(call({ ...json, 'sec-fetch-site': 'cross-site' })).to.equal(403);
    expect(call({ ...json, 'sec-fetch-site': 'same-site' })).to.equal(403);
    expect(call({ ...json, origin: 'https://evil.example' })).to.equal(403);
    expect(call({ ...json, origin: 'null' })).to.equal(403);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=x']) {
      expect(call({ 'content-type': type }), type).to.equal(403);
    }
    expect(call({})).to.equal(403);
    for (const method of ['PUT', 'DELETE', 'OPTIONS', 'TRACE']) {
      expect(statusOf(guard, method, { host, ...json }), method).to.equal(405);
    }
  });

  it('asks for its password, under whatever name', () => {
    const open = { hosts: undefined, password: 'p:w' };
    const asked = (authorization?: string): number =>
      statusOf(open, 'GET', { host: 'mesh.example', ...(authorization !== undefined && { authorization }) });
    expect(asked(basic('anyone:p:w'))).to.equal(200);
    for (const wrong of [
      undefined,
      'Bearer p:w',
      basic('p:w:x'),
      basic('a:'),
      basic('a:p:'),
      basic(''),
      'Basic ?',
    ]) {
      expect(asked(wrong), wrong).to.equal(401);
    }
    expect(refusalOf(open, 'GET', { host: 'x' })?.headers).to.have.property('www-authenticate');
    expect(['127.0.0.1', '::1', 'localhost'].every(isLoopback)).to.equal(true);
    expect(['0.0.0.0', '::', '10.0.0.1', ''].some(isLoopback)).to.equal(false);
  });

  it('has a password wherever it can do more than anyone on the machine', () => {
    const bare = { host: '127.0.0.1', token: false, actions: false };
    expect(needsPassword(bare)).to.equal(false);
    for (const more of [{ token: true }, { actions: true }, { host: '0.0.0.0' }]) {
      expect(needsPassword({ ...bare, ...more }), JSON.stringify(more)).to.equal(true);
    }
  });
});
