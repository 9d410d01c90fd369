// What a collector gets, and what becomes of one that is busy, refuses, or is not there.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { asPolarError } from '../../../services/common/errors.ts';
import { Collector, headersIn } from './collector.ts';
import { type Span, spanOf } from './otlp.ts';

interface Got {
  readonly url: string | undefined;
  readonly key: string | undefined;
  readonly spans: readonly Span[];
}

const spans = (count: number): Span[] =>
  Array.from({ length: count }, (_, i) => spanOf('s', { key: `${i}`, name: 'x', startMs: 0, endMs: 1 }));

describe('a collector of spans', () => {
  let server: Server;
  let url: string;
  let got: Got[];
  let answers: { status: number; headers?: Record<string, string>; body?: object }[];
  beforeEach(async () => {
    got = [];
    answers = [];
    server = createServer(async (request, response) => {
      const body = (await json(request)) as { resourceSpans: [{ scopeSpans: [{ spans: Span[] }] }] };
      const { 'x-key': key } = request.headers;
      got.push({ url: request.url, key: key as string, spans: body.resourceSpans[0].scopeSpans[0].spans });
      const { status, headers, body: answer } = answers.shift() ?? { status: 200 };
      response.writeHead(status, headers).end(JSON.stringify(answer ?? {}));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  const send = async (count: number, at = url): Promise<Collector> => {
    const collector = new Collector(at, headersIn('x-key=a%20b'), '1.0.0');
    await collector.add(spans(count));
    await collector.flush();
    return collector;
  };

  it('gets each span once, in requests of bounded size', async () => {
    const { sent } = await send(1_100, `${url}/base/`);
    expect(sent).to.equal(1_100);
    expect(got.map((one) => one.spans.length)).to.eql([512, 512, 76]);
    expect(new Set(got.flatMap((one) => one.spans.map(({ spanId }) => spanId))).size).to.equal(1_100);
    expect(new Set(got.map((one) => `${one.url} ${one.key}`))).to.eql(new Set(['/base/v1/traces a b']));
  });

  it('that is busy is asked again', async () => {
    const date = new Date(0).toUTCString();
    answers = ['0', date].map((after) => ({ status: 503, headers: { 'retry-after': after } }));
    expect((await send(1)).sent).to.equal(1);
    expect(got.length).to.equal(3);
    expect(got[2]?.spans).to.eql(got[0]?.spans);
  });

  it('that takes some says how many it did not', async () => {
    answers = [{ status: 200, body: { partialSuccess: { rejectedSpans: '2', errorMessage: 'too old' } } }];
    expect(await send(5)).to.include({ sent: 3, rejected: 2 });
  });

  it('that refuses is not asked again', async () => {
    answers = [{ status: 401 }];
    const error = asPolarError(await send(1).catch((thrown: unknown) => thrown));
    expect(error).to.include({ reason: 'COLLECTOR_UNAVAILABLE' });
    expect(error.message).to.contain(url).and.to.contain('401');
    expect(got.length).to.equal(1);
  });

  it('has headers that can be read', () => {
    const fault = (): void => void headersIn('x-key');
    expect(fault).to.throw('OTEL_EXPORTER_OTLP_HEADERS');
    expect([...headersIn(' a = b , c=d%3D ')]).to.eql([
      ['a', 'b'],
      ['c', 'd='],
    ]);
  });
});
