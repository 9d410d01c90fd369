// Images in requests: each trace names those of its conversation, in order, and the records have their bytes once.
import { expect } from 'chai';
import { startTestEngine } from '../../examples/scripted-engine/testing.ts';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import type { TraceImage } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { sha256 } from '../../services/common/ids.ts';
import { build } from '../../services/reconstructor/domain/build.ts';
import { expand, inOrder } from '../../services/reconstructor/domain/expand.ts';
import { bodiesOf } from '../../services/reconstructor/domain/export-records.ts';
import { imageLines } from '../../services/reconstructor/domain/images.ts';
import { lawsBroken } from '../support/agent-session.ts';
import { TestProxy } from '../support/llm-proxy.ts';

const SCRIPT =
  'when: look\nvariants: [{ name: looks, steps: [{ text: I see it. }, { text: And this one. }] }]';
/** What begins as a picture does is taken for one. */
const picture = (head: readonly number[], ...rest: number[]): Buffer => Buffer.from([...head, ...rest]);
const PNG = picture([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], 1, 2, 3);
const JPEG = picture([0xff, 0xd8, 0xff, 0xe0], 4, 5);
const ADDRESS = 'https://example.test/a.png';
const dataUrl = (type: string, bytes: Buffer): string => `data:${type};base64,${bytes.toString('base64')}`;
const shown = (url: string): object => ({ type: 'image_url', image_url: { url } });

const named = ({ digest, mediaType, url, part, sizeBytes }: TraceImage): object => ({
  digest,
  mediaType,
  url,
  part,
  sizeBytes: Number(sizeBytes),
});
const PNG_NAMED = { digest: sha256(PNG), mediaType: 'image/png', url: '', sizeBytes: PNG.length };
const JPEG_NAMED = { digest: sha256(JPEG), mediaType: 'image/jpeg', url: '', sizeBytes: JPEG.length };
const ADDRESS_NAMED = { digest: '', mediaType: '', url: ADDRESS, sizeBytes: 0 };

const imagesOf = (records: readonly Completion[]): object[][] =>
  build('prefix_merging', expand(inOrder(records, records.length))).traces.map(({ images }) =>
    images.map(named),
  );

describe('images', () => {
  let proxy: TestProxy;
  let engine: Awaited<ReturnType<typeof startTestEngine>>;
  before(async () => {
    engine = await startTestEngine({ dialect: 'sglang', script: SCRIPT });
    // In token mode, too, a request with images is asked in text mode.
    proxy = await TestProxy.start({
      engineUrl: engine.url,
      kind: 'sglang',
      inference: { mode: 'token' },
      node: { image_urls: true },
    });
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const ask = async (capability: string, messages: readonly object[]): Promise<object> => {
    const answer = await proxy.chat(capability, { model: 'policy', messages });
    expect(answer.status).to.equal(200);
    return ((await answer.json()) as { choices: [{ message: object }] }).choices[0].message;
  };

  it('are named by each trace in the order of its conversation, whichever turn brought them', async () => {
    const capability = await proxy.admit('s');
    const first = {
      role: 'user',
      content: [{ type: 'text', text: 'look here' }, shown(dataUrl('image/png', PNG)), shown(ADDRESS)],
    };
    const reply = await ask(capability, [first]);
    const again = {
      role: 'user',
      content: [shown(dataUrl('image/jpeg', JPEG)), shown(dataUrl('image/png', PNG))],
    };
    await ask(capability, [first, reply, again, { role: 'user', content: 'look there' }]);
    const other = { role: 'user', content: 'look elsewhere' };
    await ask(capability, [first, reply, other]);
    const records = await proxy.records('s');
    const before = [
      { ...PNG_NAMED, part: 1 },
      { ...ADDRESS_NAMED, part: 2 },
    ];
    expect(imagesOf(records)).to.deep.equal([
      [...before, { ...JPEG_NAMED, part: 0 }, { ...PNG_NAMED, part: 1 }],
      before,
    ]);
    expect(lawsBroken(records)).to.deep.equal([]);
    expect(records.map(({ mode }) => mode)).to.deep.equal(['text', 'text', 'text']);
  });

  it('have their bytes in the records, each once', async () => {
    const records = await proxy.records('s');
    const told = [...imageLines(bodiesOf(records).values())].map((line) => JSON.parse(line));
    expect(told.map(({ digest, media_type }) => [digest, media_type])).to.deep.equal([
      [sha256(PNG), 'image/png'],
      [sha256(JPEG), 'image/jpeg'],
    ]);
    for (const { digest, data, size_bytes } of told) {
      const bytes = Buffer.from(data, 'base64');
      expect([sha256(bytes), bytes.length]).to.deep.equal([digest, size_bytes]);
    }
  });

  it('come from tool results of another dialect, too', async () => {
    const capability = await proxy.admit('anthropic');
    const source = { type: 'base64', media_type: 'image/png', data: PNG.toString('base64') };
    const messages = [
      { role: 'user', content: 'look' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'shot', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'image', source }] }],
      },
    ];
    const answer = await fetch(`${proxy.url}/s/${capability}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ model: 'policy', max_tokens: 50, messages }),
    });
    expect(answer.status).to.equal(200);
    expect(imagesOf(await proxy.records('anthropic'))).to.deep.equal([[{ ...PNG_NAMED, part: 0 }]]);
  });

  it('are none where there are none', async () => {
    const capability = await proxy.admit('plain');
    await ask(capability, [{ role: 'user', content: 'look at the text "image_url"' }]);
    const records = await proxy.records('plain');
    expect(imagesOf(records)).to.deep.equal([[]]);
    expect([...imageLines(bodiesOf(records).values())]).to.deep.equal([]);
  });
});

/** How each dialect names an image by its address: path, request, and the field that is refused. */
const BY_ADDRESS: [string, object, string][] = [
  [
    '/v1/chat/completions',
    { messages: [{ role: 'user', content: [shown(ADDRESS)] }] },
    'messages[0].content[0].image_url.url',
  ],
  [
    '/v1/responses',
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: ADDRESS }] }] },
    'input[0].content[0].image_url',
  ],
  [
    '/v1/messages',
    {
      max_tokens: 5,
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: ADDRESS } }] }],
    },
    'messages[0].content[0].source.url',
  ],
  [
    '/v1beta/models/m:generateContent',
    { contents: [{ parts: [{ fileData: { fileUri: ADDRESS, mimeType: 'image/png' } }] }] },
    'contents[0].parts[0].fileData.fileUri',
  ],
];

describe('images by address', () => {
  const statuses = async (
    proxy: TestProxy,
    read: (text: string, field: string) => void,
  ): Promise<number[]> => {
    const capability = await proxy.admit('s');
    const found: number[] = [];
    for (const [path, body, field] of BY_ADDRESS) {
      const init = { method: 'POST', body: JSON.stringify(body) };
      const answer = await fetch(`${proxy.url}/s/${capability}${path}`, init);
      read(await answer.text(), field);
      found.push(answer.status);
    }
    return found;
  };

  it('are fetched by no engine unless the node says so', async () => {
    const engine = await startTestEngine({ dialect: 'vllm', script: SCRIPT });
    try {
      const setup = { engineUrl: engine.url, kind: 'vllm' } as const;
      await using proxy = await TestProxy.start(setup);
      const refused = await statuses(proxy, (text, field) => expect(text).to.include(field));
      expect(refused).to.deep.equal([400, 400, 400, 400]);
      expect(await proxy.records('s')).to.deep.equal([]);
      await using open = await TestProxy.start({ ...setup, node: { image_urls: true } });
      expect(await statuses(open, () => {})).to.deep.equal([200, 200, 200, 200]);
    } finally {
      await engine[Symbol.asyncDispose]();
    }
  });
});
