import { expect } from 'chai';
import { readPath } from './paths.ts';

const ANTHROPIC = { dialect: 'anthropic-messages' } as const;
const targetOf = (path: string): object => readPath(path, {}).target;

describe('paths', () => {
  it('are understood with /v1 not at all, once and twice, behind a capability and without', () => {
    const dialect = 'openai-chat';
    for (const prefix of ['', '/v1', '/v1/v1']) {
      expect(readPath(`/s/abc${prefix}/chat/completions?x=/y`, {})).to.deep.equal({
        target: { kind: 'generate', dialect },
        capabilities: ['abc'],
      });
      expect(readPath(`${prefix}/models/`, {}).target).to.deep.equal({ kind: 'models', dialect });
      expect(targetOf(`${prefix}/messages?beta=true`)).to.include({ kind: 'generate', ...ANTHROPIC });
      expect(targetOf(`${prefix}/messages/count_tokens`)).to.include({ kind: 'count', ...ANTHROPIC });
      expect(targetOf(`${prefix}/responses`)).to.include({ kind: 'generate', dialect: 'openai-responses' });
      expect(targetOf(`${prefix}/tokenize`)).to.include({ kind: 'tokenize', dialect });
    }
    const model = { kind: 'model', dialect, id: 'org/name' };
    expect(readPath('/v1/models/org%2Fname', {}).target).to.deep.equal(model);
    expect(readPath('/v1/models/org/name', {}).target).to.deep.equal(model);
    for (const root of ['/', '/s/abc', '/s/abc/', '/v1'])
      expect(readPath(root, {}).target.kind).to.equal('root');
  });

  it('name model, form and method where Google has them', () => {
    const dialect = 'google-generate';
    const of = (rest: string) => readPath(`/s/abc/v1beta/models/${rest}`, {}).target;
    const model = 'org/name:free';
    expect(of('org%2Fname:free:generateContent')).to.deep.equal({
      kind: 'generate',
      dialect,
      model,
      stream: false,
    });
    const stream = { kind: 'generate', dialect, model: 'm', stream: true };
    expect(of('m:streamGenerateContent?alt=sse')).to.deep.equal({ ...stream, events: true });
    expect(of('m:streamGenerateContent')).to.deep.equal({ ...stream, events: false });
    expect(of('m:countTokens')).to.deep.equal({ kind: 'count', dialect, model: 'm' });
    expect(of('m:free')).to.deep.equal({ kind: 'model', dialect, id: 'm:free' });
    expect(targetOf('/v1beta/models')).to.deep.equal({ kind: 'models', dialect });
    expect(targetOf('/v1/models/m:generateContent')).to.include({ kind: 'generate', dialect });
  });

  it('tell of models in the form of who asks', () => {
    const headers = { 'anthropic-version': '2023-06-01' };
    expect(readPath('/v1/models', headers).target).to.deep.equal({ kind: 'models', ...ANTHROPIC });
    const google = readPath('/v1/models', { 'x-goog-api-key': 'k' }).target;
    expect(google).to.deep.equal({ kind: 'models', dialect: 'google-generate' });
  });

  it('are unknown where they are not offered', () => {
    const unknown = ['/v1/embeddings', '/v1/v1/v1/models', '/v1x/models', '/v1beta', '/v1/constructor'];
    unknown.push('/v1/models/%zz', '/v1beta/models/%zz:generateContent');
    for (const path of unknown) expect(readPath(path, {}).target.kind, path).to.equal('unknown');
    // Gone over once: an event loop for all sessions reads it.
    expect(readPath(`${'/'.repeat(300_000)}x`, {}).target.kind).to.equal('unknown');
  });

  it('are understood in every form that clients give them', () => {
    const chat = { target: { kind: 'generate', dialect: 'openai-chat' }, capabilities: ['abc'] };
    for (const path of [
      '/s/abc/v1//chat/completions',
      '//s/abc//v1/chat/completions//',
      '/s/abc/v1/%63hat/completions',
      '/s/abc/v1/chat%2Fcompletions',
      'http://llm-proxy:4141/s/abc/v1/chat/completions?x=//y',
      'HTTPS://llm-proxy/s/abc/v1/chat/completions',
    ])
      expect(readPath(path, {}), path).to.deep.equal(chat);
    expect(readPath('http://llm-proxy', {}).target.kind).to.equal('root');
    const dialect = 'google-generate';
    for (const path of [
      '/v1beta/models/m%3AgenerateContent',
      '/v1alpha/models/m:generateContent',
      '/v1beta1/publishers/google/models/m:generateContent',
      '/v1/projects/p/locations/l/publishers/google/models/m:generateContent',
    ])
      expect(targetOf(path), path).to.include({ kind: 'generate', dialect, model: 'm' });
  });

  it('that are not offered say whose they are', () => {
    const of = (path: string, headers = {}) => readPath(path, headers).target;
    const unknown = { kind: 'unknown', path: '/messages/batches' };
    expect(of('/v1/messages/batches')).to.deep.equal({ ...unknown, ...ANTHROPIC });
    const stored = { kind: 'unknown', dialect: 'openai-responses', path: '/responses/resp_1' };
    expect(of('/s/abc/v1/responses/resp_1')).to.deep.equal(stored);
    const cached = { kind: 'unknown', dialect: 'google-generate', path: '/cachedContents' };
    expect(of('/v1beta/cachedContents')).to.deep.equal(cached);
  });

  it('come with the credential of the path before those of the headers', () => {
    const headers = { authorization: 'bearer  key-1', 'x-api-key': 'key-2' };
    expect(readPath('/s/abc/v1/models', headers).capabilities).to.deep.equal(['abc', 'key-1', 'key-2']);
    expect(readPath('/v1/models', { authorization: 'Basic eDp5' }).capabilities).to.deep.equal([]);
    const google = readPath('/v1beta/models?key=key-4', { 'x-goog-api-key': 'key-3' });
    expect(google.capabilities).to.deep.equal(['key-3', 'key-4']);
    expect(readPath('/s//v1/models', {}).capabilities).to.deep.equal([]);
  });
});
