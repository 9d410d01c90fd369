// A judge model over real HTTP: what it is shown, what its scores are worth, and what comes of answers that are none.
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type Completion, CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { type Evaluated, EvaluateWorkSchema, type Failed } from '../../gen/ts/polar/event/v1/work_pb.js';
import { type Answer, type Asked, startJudge, type TestJudge } from '../support/judge.ts';
import { newRef, startNode, type TestNode } from '../support/node.ts';
import { Mesh } from '../support/reconstructor.ts';

const REPO = '/polar/session/repo';
const PREPARE = [
  {
    step: {
      case: 'exec' as const,
      value: {
        command: `mkdir ${REPO} && cd ${REPO} && git init -q && echo x > a && git add -A && git -c user.name=x -c user.email=x@example.org commit -qm start`,
      },
    },
  },
];
const KEY = 'sk-judge-0123456789';
const scores = (...all: readonly unknown[]): string =>
  JSON.stringify({ scores: Object.fromEntries(all.map((score, i) => [`conversation_${i + 1}`, score])) });

/** A call that adds a message to those of its base, and its reply. */
function call(index: number, said: string, more: MessageInitShape<typeof CompletionSchema> = {}): Completion {
  const bodies = {
    [`u${index}`]: JSON.stringify({ role: 'user', content: said }),
    [`r${index}`]: JSON.stringify({ role: 'assistant', content: `reply ${index}` }),
  };
  return create(CompletionSchema, {
    ...{ callId: `c${index}`, index, startSeq: BigInt(2 * index), endSeq: BigInt(2 * index + 1) },
    ...{ role: 'main', trainable: true, baseIndex: -1 },
    ...{ messageDigests: [`u${index}`], replyDigest: `r${index}`, messageBodies: bodies },
    ...more,
  });
}
const goesOnFrom = (baseIndex: number, baseMessageCount: number) => ({ baseIndex, baseMessageCount });
/** Two turns of the main conversation, a title beside it, and a sub-agent. */
const CALLS = [
  call(0, 'do it'),
  call(1, 'a title?', { role: 'side' }),
  call(2, 'look this up', { role: 'sub' }),
  call(3, 'the tool says 7', goesOnFrom(0, 2)),
];

describe('evaluator rubric', function () {
  this.timeout(60_000);
  let judge: TestJudge;
  let node: TestNode;
  let mesh: Mesh;
  before(async () => {
    judge = await startJudge();
    const judges = {
      strict: { base_url: `${judge.url}/v1`, model: 'judge-model', api_key_env: 'JUDGE_KEY' },
      nowhere: { base_url: 'http://127.0.0.1:9', model: 'judge-model' },
    };
    const more = { topology: { evaluators: { judges } }, env: { JUDGE_KEY: KEY } };
    node = await startNode(['runtime-prewarm', 'evaluator'], {}, more);
    mesh = await Mesh.open(node.nats.url);
  });
  afterEach(() => expect(node.log('evaluator')).not.to.contain(KEY));
  after(async () => {
    await mesh.close();
    await node[Symbol.asyncDispose]();
    await judge[Symbol.asyncDispose]();
  });

  async function kindOf(
    config: object,
    calls: readonly Completion[] = CALLS,
    { sandbox = false, timeoutMs = 30_000 } = {},
  ) {
    const ref = newRef();
    const runtime = { backend: node.backend, prepare: PREPARE };
    const evaluator = {
      strategy: 'rubric',
      config: { judge: 'strict', rubric: 'Praise care.', judge_max_retries: 1, ...config } as never,
    };
    const value = create(EvaluateWorkSchema, {
      runtimeId: sandbox ? await node.acquire(ref, runtime) : 'rt-none',
      runtime,
      outcome: Outcome.COMPLETED,
      calls: await mesh.record(ref.sessionId, ref.attempt, calls),
      instruction: 'Add the numbers.',
      timeoutMs: BigInt(timeoutMs),
      evaluator,
    });
    await node.work(ref, { case: 'evaluate', value });
    return (await node.fact(ref)).kind;
  }
  async function evaluated(config: object = {}, calls?: readonly Completion[]): Promise<Evaluated> {
    const kind = await kindOf(config, calls);
    if (kind.case === 'evaluated') return kind.value;
    throw new Error(`not evaluated: ${kind.case === 'failed' ? kind.value.failure?.message : kind.case}`);
  }
  async function failed(config: object, calls?: readonly Completion[]): Promise<Failed> {
    const kind = await kindOf(config, calls);
    if (kind.case === 'failed') return kind.value;
    throw new Error(`not failed: ${kind.case}`);
  }
  const own = ({ traceRewards }: Evaluated) =>
    Object.fromEntries(traceRewards.map(({ callId, reward }) => [callId, reward]));

  it('gives each conversation outcome + coefficient * score / 5, and the session its outcome', async () => {
    judge.answers(scores(-5, 2.5));
    const verdict = await evaluated();
    expect(verdict.reward).to.equal(1);
    // The sub-agent's last call began first.
    expect(own(verdict)).to.deep.equal({ c2: 0.8, c0: 1.1, c3: 1.1 });
    expect(verdict.evaluation).to.deep.include({
      judge: 'strict',
      judge_model: 'judge-model',
      scores: [
        { call_id: 'c2', calls: 1, score: -5 },
        { call_id: 'c3', calls: 2, score: 2.5 },
      ],
    });
    judge.answers(scores(5, 0));
    expect(own(await evaluated({ rubric_coefficient: 2 }))).to.deep.equal({ c2: 3, c0: 1, c3: 1 });
  });

  it('goes by what the last reply says, too', async () => {
    judge.answers(scores(5, 0));
    const outcome = { strategy: 'response_match', config: { contains: ['reply 3'], reward: 7 } };
    const verdict = await evaluated({ outcome });
    expect([verdict.reward, own(verdict)]).to.deep.equal([7, { c2: 7.2, c0: 7, c3: 7 }]);
    const right = { strategy: 'math_judge', config: { answer: 3 } };
    expect((await evaluated({ outcome: right })).reward).to.equal(1);
  });

  it('goes by the outcome of tests, too', async () => {
    judge.answers(scores(5, 0));
    const tests = { repo_dir: REPO, test_command: 'true', expected_output_json: { a: 'PASSED' } };
    const config = { outcome: { strategy: 'test_on_output', config: tests } };
    const kind = await kindOf(config, CALLS, { sandbox: true });
    const verdict = kind.case === 'evaluated' ? kind.value : undefined;
    // The agent has changed nothing.
    expect(verdict?.reward).to.equal(0);
    expect(verdict?.evaluation).to.include({ empty_generation: true, judge: 'strict' });
    expect(verdict && own(verdict)).to.deep.equal({ c2: 0.2, c0: 0, c3: 0 });
  });

  it('shows the judge the instruction, the rubric, the outcome and the conversations, and sends it its key', async () => {
    judge.answers(scores(0, 0));
    await evaluated();
    const [{ path, headers, body }] = judge.asked as [Asked];
    expect([path, headers.authorization, body.model, body.temperature]).to.deep.equal([
      ...['/v1/chat/completions', `Bearer ${KEY}`, 'judge-model', 0],
    ]);
    const [, mark = ''] = /<instruction (\S+)>/.exec(body.messages[1]?.content ?? '') ?? [];
    const part = (name: string, text: string): string => `<${name} ${mark}>\n${text}\n</${name} ${mark}>`;
    const main = '[user]\ndo it\n\n[assistant]\nreply 0\n\n[user]\nthe tool says 7\n\n[assistant]\nreply 3';
    expect(body.messages[1]?.content).to.satisfy((text: string) =>
      text.startsWith(
        [
          part('instruction', 'Add the numbers.'),
          part('rubric', 'Praise care.'),
          part('outcome', '1'),
          part('conversation_1', '[user]\nlook this up\n\n[assistant]\nreply 2'),
          part('conversation_2', main),
        ].join('\n\n'),
      ),
    );
    await evaluated();
    expect(judge.asked[1]?.body.messages[1]?.content, 'the mark is new each time').not.to.contain(mark);
  });

  it('goes by what a verifier writes in the sandbox of the run, too', async () => {
    judge.answers(scores(5, 0));
    const written = { result_file: '/polar/session/r', command: `echo '{"reward": 0.5}' > /polar/session/r` };
    const config = { outcome: { strategy: 'verifier_result_file', config: written } };
    const kind = await kindOf(config, CALLS, { sandbox: true });
    const verdict = kind.case === 'evaluated' ? kind.value : undefined;
    expect([verdict?.reward, own(verdict!)]).to.deep.equal([0.5, { c2: 0.7, c0: 0.5, c3: 0.5 }]);
  });

  it('cuts the middle out of long conversations', async () => {
    judge.answers(scores(0));
    await evaluated({ max_section_chars: 1000 }, [call(0, `begin${'x'.repeat(5000)}`)]);
    const shown = judge.asked[0]?.body.messages[1]?.content ?? '';
    expect(shown).to.match(/begin.*what was between is left out.*reply 0/s);
    expect(shown.length).to.be.below(2000);
  });

  it('asks in several questions where there are many conversations', async () => {
    judge.answers((response, { body }) => {
      const names = body.messages[1]?.content.match(/(?<=^<)conversation_\d+/gm) ?? [];
      const all = Object.fromEntries(names.map((name) => [name, name === 'conversation_33' ? 5 : 0]));
      const content = `\`\`\`json\n${JSON.stringify({ scores: all })}\n\`\`\``;
      response.end(JSON.stringify({ choices: [{ message: { content } }] }));
    });
    const calls = Array.from({ length: 33 }, (_, i) => call(i, `question ${i}`));
    const rewards = Object.values(own(await evaluated({}, calls)));
    expect(rewards).to.deep.equal([...Array<number>(32).fill(1), 1.2]);
    expect(judge.asked).to.have.length(2);
  });

  it('asks nothing where there is nothing to judge', async () => {
    judge.answers(scores(5));
    const frozen = await evaluated({}, [
      call(0, 'x', { trainable: false }),
      call(1, 'y', { replyDigest: '' }),
    ]);
    expect([frozen.reward, own(frozen), judge.asked.length]).to.deep.equal([1, {}, 0]);
  });

  describe('asks again, judge_max_retries times, and never makes a reward of', () => {
    const wrong: readonly (readonly [string, Answer])[] = [
      ['what is no JSON', 'All fine: 5 points.'],
      ['an answer that leaves a conversation out', scores(1)],
      [
        'a refusal',
        (response) => response.end('{"choices": [{"message": {"content": null, "refusal": "no"}}]}'),
      ],
    ];
    for (const [what, answer] of wrong) {
      it(what, async () => {
        judge.answers(answer, scores(1, 1));
        expect(own(await evaluated())).to.include({ c2: 1.04, c3: 1.04 });
        judge.answers(answer);
        const { failure, stage } = await failed({});
        expect(failure).to.include({ reason: 'JUDGE_ANSWER_INVALID', infrastructure: false });
        expect(failure?.message).to.contain('judge strict').and.contain('conversation_1');
        expect([stage, judge.asked.length]).to.deep.equal(['evaluate', 2]);
      });
    }
  });

  it('does not ask again where the judge refuses the question, and gives no reward', async () => {
    judge.answers((response) => response.writeHead(413).end(), scores(1, 1));
    const { failure } = await failed({ judge_max_retries: 5 });
    expect(failure).to.include({ reason: 'JUDGE_REFUSED', infrastructure: false });
    expect(judge.asked).to.have.length(1);
  });

  describe('tries again later where the judge', () => {
    it('fails', async () => {
      judge.answers((response) => response.writeHead(500).end(`{"error": "${KEY}"}`), scores(1, 1));
      expect(own(await evaluated({ judge_max_retries: 0 }))).to.include({ c2: 1.04, c3: 1.04 });
      expect(judge.asked).to.have.length(2);
      expect(node.log('evaluator')).to.contain('judge strict answered with status 500');
    });

    it('fails, without the tests of its outcome, which have ended', async () => {
      judge.answers((response) => response.writeHead(500).end(), scores(1, 1));
      const tests = {
        repo_dir: REPO,
        patch_command:
          'echo x >> /polar/session/runs; cp /polar/session/runs .; git add -A; git diff --cached',
        test_command: 'echo "PASSED run $(wc -l < runs)"',
        expected_output_json: { 'run 1': 'PASSED' },
      };
      const outcome = { strategy: 'test_on_output', config: tests };
      const kind = await kindOf({ judge_max_retries: 0, outcome }, CALLS, { sandbox: true });
      expect(kind.case === 'evaluated' && kind.value.evaluation?.['results']).to.deep.equal({
        'run 1': 'PASSED',
      });
      expect(judge.asked).to.have.length(2);
    });

    it('asks to wait, and is not counted, as long as the evaluate budget lasts', async () => {
      const busy: Answer = (response) => response.writeHead(429, { 'retry-after': '0.1' }).end();
      judge.answers(busy, busy, scores(1, 1));
      expect(own(await evaluated({ judge_max_retries: 0 }))).to.include({ c2: 1.04, c3: 1.04 });
      expect(judge.asked).to.have.length(3);
      expect(node.log('evaluator')).not.to.contain('status 429');
    });

    it('does not answer', async () => {
      judge.answers(() => {}, scores(1, 1));
      expect(own(await evaluated({ judge_max_retries: 0, judge_timeout: 1 }))).to.include({ c2: 1.04 });
      expect(node.log('evaluator')).to.contain('judge strict did not answer in 1000 ms');
    });

    it('never answers, as long as the evaluate budget lasts, and says what took it', async () => {
      judge.answers(() => {});
      const config = { judge_max_retries: 0, judge_timeout: 1 };
      const kind = await kindOf(config, CALLS, { timeoutMs: 5_000 });
      const why = kind.case === 'failed' ? kind.value.failure : undefined;
      expect(why).to.include({ reason: 'JUDGE_UNAVAILABLE', infrastructure: true });
      expect(judge.asked.length).to.be.within(1, 5);
    });

    it('is not there at all, and in the end gives no reward', async () => {
      const { failure } = await failed({ judge: 'nowhere', judge_max_retries: 0 });
      expect(failure).to.include({ reason: 'JUDGE_UNAVAILABLE', infrastructure: true });
      expect(failure?.message).to.equal('judge nowhere was not reached');
    });
  });

  it('refuses a judge that the topology does not name, and asks none', async () => {
    judge.answers(scores(1, 1));
    const { failure } = await failed({ judge: judge.url });
    expect(failure).to.include({ reason: 'INVALID_TASK', infrastructure: false });
    expect(failure?.message).to.contain('evaluator.config.judge').and.contain('there are strict, nowhere');
    expect(judge.asked).to.deep.equal([]);
  });
});
