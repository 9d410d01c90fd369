import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { PolarError } from '../../../services/common/errors.ts';
import { postToEngine } from './engine-request.ts';
import { scoringAt } from './scoring.ts';

describe('a request to an engine', () => {
  let server: Server;
  let url: string;
  let answer: RequestListener;
  before(async () => {
    server = createServer((request, response) => answer(request.resume(), response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const failure = (timeoutMs = 10_000): Promise<PolarError> =>
    postToEngine({ url, body: {}, timeoutMs }).then(
      () => expect.fail('it was answered'),
      (error) => error,
    );

  const cases: readonly [string, RequestListener, string, string][] = [
    ['an error of its own', (_, to) => to.writeHead(400).end('too long'), 'ENGINE_ERROR', '400: too long'],
    [
      'a path that it has not',
      (_, to) => to.writeHead(404).end('{"detail":"Not Found"}'),
      'ENGINE_ERROR',
      '404: {"detail":"Not Found"}; real engines with the weights that sampled score ids again, the scripted one does not',
    ],
    ['what is not JSON', (_, to) => to.end('<html>'), 'ENGINE_ERROR', 'not JSON: <html>'],
    [
      'an answer that is cut',
      (_, to) => {
        to.writeHead(200, { 'content-length': '100' });
        to.write('{"choices"', () => to.destroy());
      },
      'ENGINE_UNAVAILABLE',
      'aborted',
    ],
    ['a connection that is cut', ({ socket }) => socket.destroy(), 'ENGINE_UNAVAILABLE', 'socket hang up'],
  ];
  for (const [what, listener, reason, message] of cases) {
    it(`says ${reason} for ${what}`, async () => {
      answer = listener;
      const error = await failure();
      expect(error).to.include({ reason });
      expect(error.message).to.contain(message).and.contain(url);
    });
  }

  const silences: readonly [string, RequestListener][] = [
    ['no answer', () => {}],
    ['half an answer', (_, to) => void to.writeHead(200).write('{')],
  ];
  for (const [what, listener] of silences) {
    it(`gives up on ${what} when its time is over`, async () => {
      answer = listener;
      const error = await failure(100);
      expect(error).to.include({ reason: 'ENGINE_UNAVAILABLE' });
      expect(error.message).to.contain('not done within 100 ms');
    });
  }

  for (const kind of ['vllm', 'sglang', 'llamacpp'] as const) {
    it(`tells no logprobs where the answer holds none (${kind})`, async () => {
      const score = scoringAt({ url, kind });
      for (const empty of ['{}', 'null']) {
        answer = (_, to) => to.end(empty);
        expect(await score('tiny', Int32Array.of(1, 2, 3), [1, 2])).to.deep.equal([Number.NaN, Number.NaN]);
      }
    });
  }
});
