import { expect } from 'chai';
import { readPath } from './paths.ts';

describe('paths', () => {
  it('are understood with /v1 not at all, once and twice, behind a capability and without', () => {
    for (const prefix of ['', '/v1', '/v1/v1']) {
      expect(readPath(`/s/abc${prefix}/chat/completions?x=/y`, {})).to.deep.equal({
        target: { kind: 'chat' },
        capabilities: ['abc'],
      });
      expect(readPath(`${prefix}/models/`, {}).target).to.deep.equal({ kind: 'models' });
    }
    expect(readPath('/v1/models/org%2Fname', {}).target).to.deep.equal({ kind: 'model', id: 'org/name' });
    for (const root of ['/', '/s/abc', '/s/abc/', '/v1'])
      expect(readPath(root, {}).target.kind).to.equal('root');
  });

  it('are unknown where they are not offered', () => {
    const unknown = [
      '/v1/embeddings',
      '/v1/v1/v1/models',
      '/v1x/models',
      '/s/abc/v1/responses',
      '/v1/models/%zz',
    ];
    for (const path of unknown) expect(readPath(path, {}).target.kind, path).to.equal('unknown');
  });

  it('come with the credential of the path before those of the headers', () => {
    const headers = { authorization: 'bearer  key-1', 'x-api-key': 'key-2' };
    expect(readPath('/s/abc/v1/models', headers).capabilities).to.deep.equal(['abc', 'key-1', 'key-2']);
    expect(readPath('/v1/models', { authorization: 'Basic eDp5' }).capabilities).to.deep.equal([]);
    expect(readPath('/s//v1/models', {}).capabilities).to.deep.equal([]);
  });
});
