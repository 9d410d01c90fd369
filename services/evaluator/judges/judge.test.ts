import { expect } from 'chai';
import { type Answer, startJudge, type TestJudge } from '../../../test/support/judge.ts';
import { PolarError } from '../../common/errors.ts';
import { scoresIn } from './answer.ts';
import { askJudge } from './judge.ts';

const KEY = 'sk-judge-0123456789';

describe('a judge', () => {
  let server: TestJudge;
  before(async () => {
    server = await startJudge();
  });
  after(() => server[Symbol.asyncDispose]());

  const ask = async (
    path = '/v1',
    signal = new AbortController().signal,
    timeoutMs = 20_000,
  ): Promise<unknown> => {
    const judge = { name: 'strict', baseUrl: `${server.url}${path}`, model: 'm', key: () => KEY };
    const messages = [{ role: 'user' as const, content: 'well?' }];
    return await askJudge(judge, { messages, temperature: 0, timeoutMs }, signal).catch(
      (error: unknown) => error,
    );
  };

  it('is asked at its chat API, whether its address ends with /v1 or not', async () => {
    server.answers('fine');
    expect([await ask('/v1'), await ask('')]).to.deep.equal(['fine', 'fine']);
    expect(server.asked.map(({ path }) => path)).to.deep.equal(Array(2).fill('/v1/chat/completions'));
  });

  it('is asked where its address says, where that has another version', async () => {
    server.answers('fine');
    const paths = ['/v1beta/openai', '/api/paas/v4', '/api/v1', '/vllm'];
    for (const path of paths) expect(await ask(path)).to.equal('fine');
    const asked = ['/v1beta/openai', '/api/paas/v4', '/api/v1', '/vllm/v1'];
    expect(server.asked.map(({ path }) => path)).to.deep.equal(
      asked.map((path) => `${path}/chat/completions`),
    );
  });

  it('that refuses in words, or only reasons, has answered: with nothing', async () => {
    for (const message of [{ content: null, refusal: 'no' }, { reasoning_content: 'hm' }, { content: '' }]) {
      server.answers((response) => response.end(JSON.stringify({ choices: [{ index: 0, message }] })));
      expect(await ask(), JSON.stringify(message)).to.equal('');
    }
  });

  it('that answers in parts has said what is text of them', async () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] };
    const content = [thinking, { type: 'text', text: 'fi' }, { type: 'text', text: 'ne' }];
    server.answers((response) => response.end(JSON.stringify({ choices: [{ message: { content } }] })));
    expect(await ask()).to.equal('fine');
  });

  it('whose answer was cut for its length has said nothing: a draft is no answer', async () => {
    const choice = { message: { content: '{"scores": {"a": 1}} but then' }, finish_reason: 'length' };
    server.answers((response) => response.end(JSON.stringify({ choices: [choice] })));
    expect(await ask()).to.equal('');
  });

  it('that asks to wait says how long', async () => {
    const wait = async (status: number, headers: Record<string, string>): Promise<unknown> => {
      server.answers((response) => response.writeHead(status, headers).end());
      const error = await ask();
      return error instanceof PolarError ? error.retryAfterMs : error;
    };
    expect(await wait(429, {})).to.equal(1000);
    expect(await wait(429, { 'retry-after': '20' })).to.equal(20_000);
    expect(await wait(503, { 'retry-after': '0.5' })).to.equal(500);
    expect(await wait(503, { 'retry-after': 'soon' })).to.equal(undefined);
    const date = new Date(Date.now() + 60_000).toUTCString();
    expect(await wait(429, { 'retry-after': date })).to.be.within(30_000, 60_000);
  });

  const failures: readonly (readonly [string, Answer, RegExp])[] = [
    ['fails', (response) => response.writeHead(500).end(KEY), /status 500$/],
    ['refuses its key', (response) => response.writeHead(401).end(`no key ${KEY}`), /status 401$/],
    ['breaks the connection', (response) => response.destroy(), /was not reached$/],
    ['breaks off', (response) => response.write('{', () => response.destroy()), /was not reached$/],
    ['answers no JSON', (response) => response.end('<html>'), /no JSON$/],
    ['answers no completion', (response) => response.end('{"choices": []}'), /no chat completion$/],
    ['answers too much', (response) => response.end(`"${'x'.repeat(1024 * 1024)}"`), /than 1048576 bytes$/],
    [
      'leads elsewhere',
      (response) => response.writeHead(307, { location: `${server.url}/elsewhere` }).end(),
      /was not reached$/,
    ],
  ];
  for (const [what, answer, told] of failures) {
    it(`that ${what} is a failure of its own, once, and does not tell the key`, async () => {
      server.answers(answer);
      const error = await ask();
      expect(error).to.include({ reason: 'JUDGE_UNAVAILABLE' });
      expect(error).to.have.property('message').that.matches(told).and.does.not.contain(KEY);
      expect(server.asked).to.have.length(1);
    });
  }

  it('that does not answer in its time is a failure of its own', async () => {
    server.answers(() => {});
    const error = await ask('/v1', new AbortController().signal, 100);
    expect(error).to.include({ reason: 'JUDGE_UNAVAILABLE' });
    expect(error).to.have.property('message', 'judge strict did not answer in 100 ms');
  });

  for (const status of [400, 413, 422]) {
    it(`that does not take the question (${status}) has refused it: asking again is of no use`, async () => {
      server.answers((response) => response.writeHead(status).end(`too long ${KEY}`));
      const error = await ask();
      expect(error).to.include({ reason: 'JUDGE_REFUSED', retryable: false });
      expect(error).to.have.property('message', `judge strict answered with status ${status}`);
    });
  }

  it('is left when the evaluation is', async () => {
    server.answers(() => {});
    const stop = new AbortController();
    const asked = ask('/v1', stop.signal);
    stop.abort(new Error('stopped'));
    expect(await asked).to.have.property('message', 'stopped');
  });
});

describe('scores in an answer', () => {
  it('are one for each conversation, in one object, with or without a fence, words and thoughts', () => {
    const scores = new Map([
      ['a', -5],
      ['b', 0.5],
    ]);
    expect(scoresIn('{"scores": {"a": -5, "b": 0.5}}', ['a', 'b'])).to.deep.equal(scores);
    const json = '{"scores": {"a": -5, "b": 0.5}}';
    for (const answer of [
      `\n\`\`\`json\n${json}\n\`\`\`\n`,
      `\`\`\`JSON\r\n${json}\r\n\`\`\``,
      `Here they are:\n\`\`\`\n${json}\n\`\`\`\nI hope this helps.`,
      `<think>\nOf form {"scores": {"a": 5, "b": 5}}?\n</think>\n\n${json}`,
      `The prompt began it: {"a"\n</think>${json}`,
    ])
      expect(scoresIn(answer, ['a', 'b']), answer).to.deep.equal(scores);
  });

  it('are none where anything is wrong', () => {
    const wrong = [
      'five points',
      '{"scores": {"a": 5.1}}',
      '{"scores": {"a": -5.1}}',
      '{"scores": {"a": "5"}}',
      '{"scores": {"a": null}}',
      '{"scores": {"a": -5, "a": 5}}',
      '{"scores": {"a": -5}, "scores": {"a": 5}}',
      '{"scores": {}}',
      '{"scores": {"a": 1, "b": 1}}',
      '{"scores": {"a": 1}, "reward": 1}',
      '{"a": 1}',
      '[]',
      '{"scores": {"a": 1}} No: {"scores": {"a": 5}}',
      '<think> perhaps {"scores": {"a": 1}}',
      '{"scores": {"a": 1}}</think>',
      '{a} {"scores": {"a": 1}}',
      '{"scores": {"a": 1}}{"scores": {"a": 5}}',
    ];
    expect(wrong.filter((answer) => scoresIn(answer, ['a']) !== undefined)).to.deep.equal([]);
  });
});
