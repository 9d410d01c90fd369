// Views of messages that a small mesh seldom has: waits, retries, lost nodes, masked tokens, changes that are asked for.
import { expect } from 'chai';
import { htmlOf, TinyElement, tinyDom } from '../../../../test/support/tiny-dom.ts';
import { type Child, write } from '../element.js';
import type { Session, Summary, Task } from '../messages.ts';
import { meshView } from './mesh.js';
import { callsPicture, rewardPicture, sparkline, timeline } from './picture.js';
import { sessionView } from './session.js';
import { taskView, withSession } from './task.js';
import { tasksView } from './tasks.js';

const html = (view: (Child | '')[]): string => {
  const root = new TinyElement('main');
  write(tinyDom, root, view);
  return htmlOf(root);
};

const TASK: Task = {
  ...{ taskId: 't', harness: 'pi', createTime: '2026-01-02T03:04:05.678Z', meanReward: 0.25 },
  ...{
    sessionsByState: { queued: 1, ended: 3 },
    sessionsByOutcome: { completed: 2, infrastructure_error: 1 },
  },
};
const SESSION: Session = {
  ...{ sessionId: 's-0', taskId: 't', state: 'SESSION_STATE_ENDED', outcome: 'OUTCOME_COMPLETED', reward: 1 },
  ...{ endTime: '2026-01-02T03:05:05Z', attempt: 2, nodeId: 'b' },
  times: {
    queueMs: '100',
    prepareMs: '200',
    runMs: '61000',
    buildMs: '5',
    evaluateMs: '50',
    totalMs: '61360',
  },
  stats: {
    ...{ calls: 3, traces: 1, trainedTokens: '90', sampledTokens: '100', contextTokens: '1234' },
    maskedTokens: { invalid_tool_call: '10' },
  },
  attempts: [
    {
      ...{ attempt: 1, nodeId: 'a', denied: { count: 2, targets: ['x:443'] } },
      failure: { boundary: 'BOUNDARY_MESH', reason: 'NODE_LOST', message: 'node a is gone' },
    },
    { attempt: 2, nodeId: 'b' },
  ],
};
const NO_FILTER = { name: '', harness: '', state: '', outcome: '' };
const READ_ONLY = { actions: false };
const shown = (session: Session): string =>
  html(sessionView({ session, calls: [], callsDone: true, summaries: [] }, READ_ONLY));

const summary = (call_id: string): Summary => ({
  ...{ call_id, prompt_tokens: 1_200, sampled_tokens: 7 },
  ...{ start_ms: 1_000, queue_ms: 0, first_token_ms: 30, total_ms: 100 },
});

describe('dashboard views', () => {
  it('of a mesh tell lost, draining and failing nodes, slots, totals', () => {
    const nodes = [
      { nodeId: 'a' },
      { nodeId: 'b', healthy: true, draining: true, running: 2, runSlots: 4, open: 3 },
      { nodeId: 'c', healthy: true, failures: { count: 4, reason: 'SANDBOX_FAILED' } },
    ];
    const mesh = {
      nodes,
      queues: [{ name: 'q', waiting: 7 }],
      tasks: [TASK],
      engines: [],
      problems: ['x is away'],
      waits: { t: { reason: 'WAIT_REASON_TURN', message: 'others first' } },
    };
    const page = html(meshView({ ...mesh, rates: [1, 2.5] }, READ_ONLY));
    expect(page)
      .to.contain('>lost<')
      .and.to.contain('>draining<')
      .and.to.contain('title="4 in a row, SANDBOX_FAILED">failing<')
      .and.to.contain('2 / 4, 3 elsewhere')
      .and.to.contain('2 of 3');
    expect(page).to.contain('1 infrastructure error').and.to.contain('>2.50<').and.to.contain('role="alert"');
    expect(page).to.contain('<strong>turn</strong>: others first');
    expect(page).to.not.contain('<button');
  });

  it('of a mesh ask for a change twice, where changes are on', () => {
    const mesh = {
      nodes: [{ nodeId: 'a', healthy: true }],
      queues: [],
      tasks: [],
      engines: [],
      problems: [],
      waits: {},
    };
    const once = html(meshView({ ...mesh, rates: [] }, { actions: true }));
    expect(once).to.contain('data-action="drain" data-subject="a">Drain<').and.not.to.contain('data-sure');
    const asked = html(meshView({ ...mesh, rates: [] }, { actions: true, asked: 'drain a' }));
    expect(asked).to.contain('data-sure="">Yes, drain<').and.to.contain('data-action="no">No<');
  });

  it('of a session tell its stages, what became of its tokens, each attempt and why it ended', () => {
    const page = shown(SESSION);
    expect(page).to.contain('1 min 1 s').and.to.contain('masked: invalid tool call');
    expect(page).to.contain('NODE_LOST</strong> at the mesh: node a is gone').and.to.contain('2 x:443');
    expect(page).to.contain('sampled = trained + masked = usage');
  });

  it('of a session say where tokens are not conserved', () => {
    for (const wrong of [{ sampledTokens: '101' }, { usageMismatches: 1 }]) {
      const page = shown({ ...SESSION, stats: { ...SESSION.stats, ...wrong } });
      expect(page).to.contain('class="badge bad">no:').and.not.to.contain('= usage<');
    }
  });

  it('of a session show what is new in each call, and that there are more', () => {
    const [ask, told] = [
      { role: 'user', content: 'ask' },
      { role: 'assistant', content: 'told' },
    ];
    const calls = [
      { call_id: 'c1', messages: [ask], reply: told },
      {
        call_id: 'c2',
        messages: [ask, told, { role: 'tool', content: [{ type: 'text', text: 'new' }] }],
        reply: null,
      },
    ];
    const page = html(
      sessionView({ session: SESSION, calls, callsDone: true, summaries: [summary('c1')] }, READ_ONLY),
    );
    expect(page)
      .to.contain('2 messages as in the call before')
      .and.to.contain('no reply was delivered whole');
    expect(page.split('>ask<')).to.have.length(2);
    expect(page).to.contain('The first 2 of 3 are here');
    expect(page).to.contain('1. c1: 100 ms, 1,200 tokens in, 7 out').and.to.contain('2. c2: <');
    expect(page).to.contain('Model calls: 1 in 100 ms');
  });

  it('of a session say that no call was recorded only when none can come', () => {
    const { stats: _, endTime: __, ...running }: Session = SESSION;
    expect(shown(running)).to.contain('None was there').and.not.to.contain('None was recorded');
    for (const over of [
      { ...SESSION, stats: { calls: 0 } },
      { ...running, endTime: '2026-01-02T03:05:05Z' },
    ]) {
      expect(shown(over)).to.contain('None was recorded');
    }
  });

  it('of a task say why a session waits, and take over what changed', () => {
    const queued: Session = { sessionId: 's-1', taskId: 't', sampleIndex: 1, state: 'SESSION_STATE_QUEUED' };
    const waiting = { 's-1': { reason: 'WAIT_REASON_QUEUE_CAP', message: '4 of 4' } };
    const given = { task: TASK, sessions: [SESSION, queued], waiting, next: '50', page: '' };
    const page = html(taskView(given, READ_ONLY));
    expect(page).to.contain('queue cap</strong>: 4 of 4').and.to.contain('#/task/t?page=50');
    const changed = { ...queued, state: 'SESSION_STATE_RUNNING' };
    const sessions = withSession(given.sessions, changed);
    expect(sessions).to.deep.equal([SESSION, changed]);
    expect(withSession(sessions, { ...changed, sessionId: 's-77' })).to.deep.equal(sessions);
    expect(html(taskView({ ...given, sessions }, READ_ONLY))).to.contain('badge live">running');
  });

  it('of tasks link two that were picked, and the next page with the same filter', () => {
    const filter = { ...NO_FILTER, harness: 'pi', state: 'queued' };
    const given = { tasks: [TASK], next: 'archive-9', filter, page: '', harnesses: ['pi'] };
    const page = html(tasksView({ ...given, picked: ['t', 'u/v'] }));
    expect(page).to.contain('#/compare/t/u%2Fv').and.to.contain('aria-pressed="true"');
    expect(page).to.contain('#/tasks?harness=pi&amp;state=queued&amp;page=archive-9');
    expect(page).to.contain('<option value="queued" selected="">');
  });

  it('can be heard: tables have captions and heads, pictures a text, fields a label', () => {
    const pages = [
      shown(SESSION),
      html(tasksView({ tasks: [TASK], next: '', filter: NO_FILTER, page: '', picked: [], harnesses: [] })),
    ];
    for (const page of pages) {
      const count = (part: RegExp): number => [...page.matchAll(part)].length;
      expect(count(/<table>/g))
        .to.be.above(0)
        .and.to.equal(count(/<table><caption>[^<]+<\/caption><thead>/g));
      expect(count(/<th[ >]/g)).to.equal(count(/<th scope="col">/g));
      expect(count(/<svg/g))
        .to.be.above(0)
        .and.to.equal(count(/<svg role="img" aria-label="[^"]+"/g));
      expect(count(/<(input|select)/g)).to.equal(count(/<label>/g));
      expect(count(/<h1/g)).to.equal(1);
    }
  });
});

describe('dashboard pictures', () => {
  const rects = (picture: ReturnType<typeof timeline>): Record<string, string>[] =>
    picture.children.flatMap((child) =>
      typeof child !== 'string' && child.tag === 'rect' ? [child.attributes] : [],
    );

  it('stand rewards on one zero line, whatever their signs', () => {
    const [up, down, none] = rects(
      rewardPicture([2, -1, undefined].map((reward, i) => ({ label: String(i), reward }))),
    );
    expect([up?.['class'], down?.['class'], none?.['class']]).to.deep.equal([
      'bar positive',
      'bar negative',
      'bar none',
    ]);
    expect(Number(up?.['y']) + Number(up?.['height'])).to.be.closeTo(Number(down?.['y']), 0.1);
    expect(Number(up?.['height'])).to.be.closeTo(2 * Number(down?.['height']), 0.2);
    expect(rewardPicture([]).attributes['aria-label']).to.equal('Rewards of 0, 0 of them with one');
  });

  it('put stages behind one another, and grading below building', () => {
    const bars = rects(timeline({ queueMs: '100', runMs: '300', buildMs: '50', evaluateMs: '100' }));
    const at = bars.map(({ x, width }) => [Number(x), Number(width)]);
    expect(at).to.deep.equal([
      [0, 144],
      [144, 0],
      [144, 0],
      [144, 432],
      [576, 72],
      [576, 144],
    ]);
    expect(bars[4]?.['y']).to.not.equal(bars[5]?.['y']);
  });

  it('draw calls over time, those at the same time below each other', () => {
    const shown = callsPicture([
      { ...summary('late'), start_ms: 1_300 },
      { ...summary('sub'), start_ms: 1_050, queue_ms: 20 },
      summary('main'),
    ]);
    expect(html([shown])).to.contain('Model calls: 3 in 400 ms, one or more in progress for 250 ms');
    const bars = rects(shown.children[0] as ReturnType<typeof timeline>);
    const at = bars.map((bar) => [bar['class'], Number(bar['x']), Number(bar['width']), Number(bar['y'])]);
    expect(at).to.deep.equal([
      ['call prefill', 0, 54, 2],
      ['call decode', 54, 126, 2],
      ['call queue', 90, 36, 14],
      ['call prefill', 126, 18, 14],
      ['call decode', 144, 126, 14],
      ['call prefill', 540, 54, 2],
      ['call decode', 594, 126, 2],
    ]);
    const many = callsPicture(Array.from({ length: 20 }, () => summary('m')));
    expect((many.children[0] as ReturnType<typeof timeline>).attributes['height']).to.equal('100');
  });

  it('have a text where there is nothing to draw', () => {
    expect(sparkline('ended a second', []).attributes['aria-label']).to.equal(
      'ended a second: now –, at most 0.00',
    );
    expect(sparkline('x', [1, 2, 0]).children.length).to.equal(2);
  });
});
