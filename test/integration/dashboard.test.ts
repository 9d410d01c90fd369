// `polar dashboard` on a real mesh with access tokens: what it serves and refuses, and what its views show of sessions.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Child, write } from '../../clients/dashboard/page/element.js';
import * as load from '../../clients/dashboard/page/load.js';
import { call, stream } from '../../clients/dashboard/page/rpc.js';
import { compareView } from '../../clients/dashboard/page/views/compare.js';
import { meshView } from '../../clients/dashboard/page/views/mesh.js';
import { sessionView } from '../../clients/dashboard/page/views/session.js';
import { taskView, withSession } from '../../clients/dashboard/page/views/task.js';
import { tasksView } from '../../clients/dashboard/page/views/tasks.js';
import { TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { newToken } from '../../services/common/access/tokens.ts';
import { createServiceClient } from '../../services/common/client.ts';
import { type Running, startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { curlTask, spoken, waitForEnd } from '../support/tasks.ts';
import { htmlOf, TinyElement, tinyDom } from '../support/tiny-dom.ts';

const HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)>';
const ROLLOUT = 'polar.scheduler.v1.RolloutService';
const READ_ONLY = { actions: false };
const NO_FILTER = { name: '', harness: '', state: '', outcome: '' };
const WAIT_MS = 60_000;

interface Asked {
  readonly base: string;
  readonly headers: Record<string, string>;
}

describe('polar dashboard', function () {
  this.timeout(2 * WAIT_MS);
  let folder: string;
  let mesh: Mesh;
  let dashboard: Running;
  let base: string;
  /** Its address, and its password as a browser sends it. */
  let asked: Asked;
  const tokens = {
    services: newToken('services', ['node', 'read']),
    reader: newToken('reader', ['read']),
    operator: newToken('operator', ['read', 'submit', 'operate']),
  };
  const rollout = () =>
    createServiceClient(RolloutService, mesh.schedulerUrl, { token: tokens.operator.token });

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-dashboard-'));
    const tokensFile = join(folder, 'tokens.txt');
    writeFileSync(
      tokensFile,
      Object.values(tokens)
        .map(({ line }) => `${line}\n`)
        .join(''),
    );
    mesh = await startMesh({ access: { tokensFile, token: tokens.services.token } });
    ({ running: dashboard, asked } = await started(tokens.reader.token));
    base = asked.base;
    const print = `printf '%s\\n' '${HOSTILE}'`;
    const hostile = create(TaskSpecSchema, {
      ...{ taskId: 'hostile', instruction: HOSTILE, numSamples: 2 },
      harness: { name: 'shell', command: { command: `${print}; ${print} >&2; ${spoken(HOSTILE)}; exit 3` } },
      evaluator: { strategy: 'session_completed' },
    });
    await rollout().submitTasks({ tasks: [{ spec: hostile }, { spec: curlTask('counted', 2) }] });
    await Promise.all(['hostile', 'counted'].map((id) => waitForEnd(rollout(), id, WAIT_MS)));
  });
  after(async () => {
    dashboard?.child.kill('SIGTERM');
    await dashboard?.ended;
    await mesh?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  /** A dashboard; its address has no slash at its end. */
  async function started(token: string, ...flags: string[]) {
    const args = ['dashboard', '-c', mesh.topologyFile, '--port', '0', '--json', ...flags];
    const running = startPolar(args, { env: { POLAR_TOKEN: token } });
    await eventually('it says where it is', () => running.stdout().endsWith('}\n'));
    const { url, password = '' } = JSON.parse(running.stdout()) as { url: string; password?: string };
    const headers = { authorization: `Basic ${Buffer.from(`me:${password}`).toString('base64')}` };
    return { running, password, asked: { base: url.replace(/\/$/, ''), headers } };
  }

  /** With a path and headers as they are given. */
  const raw = (path: string, headers: Record<string, string> = {}, body?: string, url = base) =>
    new Promise<{ status: number; text: string; headers: NodeJS.Dict<string | string[]> }>(
      (resolve, reject) => {
        const { hostname, port } = new URL(url);
        const method = body === undefined ? 'GET' : 'POST';
        const sent = request(
          { hostname, port, path, method, headers: { ...asked.headers, ...headers } },
          async (response) => {
            const text = (await Array.fromAsync(response)).join('');
            resolve({ status: response.statusCode ?? 0, text, headers: response.headers });
          },
        );
        sent.on('error', reject).end(body);
      },
    );

  const html = (view: (Child | '')[]): string => {
    const root = new TinyElement('main');
    write(tinyDom, root, view);
    return htmlOf(root);
  };

  it('serves the files of its page, with a policy that lets nothing else in', async () => {
    const { text, headers } = await raw('/');
    expect(headers['content-security-policy']).to.match(/^default-src 'none'; script-src 'self';/);
    expect(headers['content-security-policy']).to.not.match(/unsafe|\*|http/);
    expect(headers).to.include({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
    expect(text).to.not.match(/ on\w+=| style=|https?:|<script>/);
    const seen = new Set<string>();
    const found = async (path: string): Promise<void> => {
      if (seen.has(path)) return;
      seen.add(path);
      const file = await raw(path);
      expect(file.status, path).to.equal(200);
      const told = file.text.matchAll(path === '/' ? /(?:src|href)="(\/[^"]+)"/g : /from '(\.[^']+\.js)'/g);
      for (const [, next = ''] of told) await found(new URL(next, `${base}${path}`).pathname);
    };
    await found('/');
    expect(seen).to.include('/views/session.js').and.to.have.property('size', 16);
  });

  it('serves no other file, whatever the path', async () => {
    const paths = [
      ...[
        '/../package.json',
        '//etc/passwd',
        '/views/../../server.ts',
        '/%2e%2e/%2e%2e/package.json',
        '/page/main.js',
      ],
      ...[
        '/element.test.ts',
        '/messages.ts',
        '/views',
        '/views/',
        '/index.html',
        '/healthz',
        '/..\\..\\package.json',
      ],
      ...['/__proto__', '/constructor', `/${'a'.repeat(8_000)}`, '/main.js/', '/style.css%00', '*'],
    ];
    for (const path of paths) {
      const { status, text } = await raw(path);
      expect(status, path).to.equal(404);
      expect(text).to.equal('there is no such file\n');
    }
  });

  it('hands on a fixed list of reads with its token, which it tells nobody', async () => {
    const read = await call(`${ROLLOUT}/GetTask`, { taskId: 'counted', summary: true }, asked);
    expect(read.task.taskId).to.equal('counted');
    const others = ['SubmitTask', 'SubmitTasks', 'CancelTask', 'CancelSession', 'RetrySessions', 'DrainNode'];
    const closed = [
      ...others.map((name) => `${ROLLOUT}/${name}`),
      ...['AckTrajectories', 'ListConsumers'].map(
        (name) => `polar.reconstructor.v1.TrajectoryService/${name}`,
      ),
      ...[
        'polar.llm_proxy.v1.PolicyService/Pause',
        'polar.harness_executor.v1.HarnessService/GetSessionArtifact',
        'polar.llm_proxy.v1.ProxyService/DrainEngine',
      ],
    ];
    for (const method of closed) {
      const json = { 'content-type': 'application/json' };
      const { status } = await raw(`/${method}`, json, '{}');
      expect(status, method).to.be.oneOf([404, 501]);
    }
    const streams = [
      'polar.reconstructor.v1.TrajectoryService/StreamTrajectories',
      'polar.runtime_prewarm.v1.RuntimeService/Exec',
    ];
    for (const method of streams) {
      const refused = await Array.fromAsync(stream(method, {}, asked)).catch((error) => error);
      const { code, message } = refused as { code: string; message: string };
      expect(`${code} ${message}`, method).to.match(/^(unimplemented|unknown 404:)/);
    }
    const unknown = await call(`${ROLLOUT}/GetTask`, { taskId: 'nothing' }, asked).catch((error) => error);
    expect(unknown).to.include({ code: 'not_found', message: 'there is no task nothing' });
    const engines = 'polar.llm_proxy.v1.ProxyService/ListEngines';
    const away = await call(engines, {}, { ...asked, node: 'node-9' }).catch((error) => error);
    expect(away).to.have.property('code', 'not_found');
    const { text } = await raw('/settings.json');
    expect(JSON.parse(text)).to.deep.equal({ actions: false, nodes: ['node-1'] });
    expect(dashboard.stdout() + dashboard.stderr()).to.not.contain(tokens.reader.token);
  });

  it('refuses calls under other names, of other pages, and bodies beyond its limit', async () => {
    const json = { 'content-type': 'application/json' };
    const list = (headers: Record<string, string>, body = '{}') =>
      raw(`/${ROLLOUT}/ListTasks`, headers, body);
    expect((await list(json)).status).to.equal(200);
    expect((await list({ ...json, host: 'rebound.example' })).status).to.equal(421);
    expect((await raw('/', { host: 'rebound.example' })).status).to.equal(421);
    expect((await list({ ...json, origin: 'https://evil.example' })).status).to.equal(403);
    expect((await list({ 'content-type': 'text/plain' })).status).to.equal(403);
    const large = await list(json, JSON.stringify({ pageToken: 'x'.repeat(70_000) }));
    expect(large.status).to.equal(400);
    expect(large.text).to.contain('is larger than');
  });

  it('shows all that sessions say as text', async () => {
    const options = asked;
    const shown = await load.loadMesh(['node-1'], options);
    expect(shown.problems).to.deep.equal([]);
    const pages = [html(meshView({ ...shown, rates: [0, 1.5] }, READ_ONLY))];
    expect(pages[0]).to.contain('node-1').and.to.contain(mesh.engineUrl);
    const tasks = await load.loadTasks({ ...NO_FILTER, name: 'HOST' }, '', options);
    pages.push(html(tasksView({ ...tasks, filter: NO_FILTER, page: '', picked: [], harnesses: [] })));
    expect(pages[1]).to.contain('hostile').and.not.to.contain('counted');
    const task = await load.loadTask('hostile', '', options);
    pages.push(html(taskView({ ...task, page: '' }, READ_ONLY)));
    const { session } = await load.loadSession(task.sessions[0]?.sessionId ?? '', options);
    const output = await load.loadOutput(session, options);
    expect(output).to.include({ stdout: `${HOSTILE}\n`, stderr: `${HOSTILE}\n`, exitCode: 3, attempt: 1 });
    const calls = await load.loadCalls(session.sessionId, options);
    expect(calls[0]?.messages?.at(-1)?.content).to.equal(HOSTILE);
    const summaries = await load.loadSummaries(session.sessionId, options);
    expect(summaries.map(({ call_id }) => call_id)).to.deep.equal(calls.map(({ call_id }) => call_id));
    const evaluation = await load.loadEvaluation(session, options);
    expect(evaluation).to.include({ completed: false });
    const view = html(
      sessionView({ session, output, evaluation, calls, callsDone: true, summaries }, READ_ONLY),
    );
    expect(view).to.contain('<dt>completed</dt><dd>false</dd>').and.to.contain('Model calls: 1 in ');
    expect(view).to.contain('HARNESS_EXIT').and.to.contain('sampled = trained + masked = usage');
    pages.push(view);
    const sides = await load.loadCompared(['hostile', 'counted'], options);
    pages.push(html(compareView(sides)));
    for (const page of pages) expect(page).to.not.match(/<script|<img|undefined|NaN|\[object/);
    expect(pages[2]).to.contain('&lt;script>alert(1)');
    expect(view.split('&lt;script>alert(1)').length).to.be.at.least(4);
  });

  it('follows a task by its watch, and tells nothing twice', async () => {
    await rollout().submitTask({ spec: curlTask('watched', 3) });
    let shown: Awaited<ReturnType<typeof load.loadTask>> | undefined;
    for await (const { task, session } of load.watchTask('watched', asked)) {
      // Read behind the beginning of the watch: what changes between the two is not missed.
      shown ??= await load.loadTask('watched', '', asked);
      if (task !== undefined) shown.task = task;
      if (session !== undefined) shown.sessions = withSession(shown.sessions, session);
    }
    const { sessions: ended, task: now } = await load.loadTask('watched', '', asked);
    expect(shown?.sessions).to.deep.equal(ended);
    expect(shown?.task.sessionsByOutcome).to.deep.equal({ completed: 3 });
    expect(load.rateOf([{ ...now, sessionsByOutcome: { completed: 1 } }], [now], 4)).to.equal(0.5);
  });

  it('asks for pages of a task of 10,000 sessions, and why each of a page waits', async () => {
    await rollout().drainNode({ nodeId: 'node-1' });
    await rollout().submitTask({ spec: curlTask('large', 10_000) });
    const first = await load.loadTask('large', '', asked);
    expect(first.sessions).to.have.length(50);
    expect(Object.values(first.waiting).map(({ reason }) => reason)).to.deep.equal(
      Array.from({ length: 50 }, () => 'WAIT_REASON_NODES_DRAINING'),
    );
    const second = await load.loadSessions('large', first.next, asked);
    expect(second.sessions[0]?.sampleIndex).to.equal(50);
    expect(html(taskView({ ...first, page: '' }, READ_ONLY)))
      .to.contain('nodes draining')
      .and.to.contain('Next page');
    const [message] = await Array.fromAsync(firstOf(load.watchTask('large', asked)));
    expect(message.session).to.equal(undefined);
    expect(message.task.sessionsByState).to.deep.equal({ queued: 10_000 });
    const { waits } = await load.loadMesh([], asked);
    expect(waits['large']?.reason).to.equal('WAIT_REASON_NODES_DRAINING');
    await rollout().cancelTask({ taskId: 'large' });
    await rollout().drainNode({ nodeId: 'node-1', undo: true });
  });

  it('changes something only with --actions, as far as its token is good for it', async () => {
    const reader = await started(tokens.reader.token, '--actions');
    const operator = await started(tokens.operator.token, '--actions');
    try {
      const drain = (at: Asked, undo: boolean) =>
        call(`${ROLLOUT}/DrainNode`, { nodeId: 'node-1', undo }, at);
      const refused = await drain(reader.asked, false).catch((error) => error);
      expect(refused).to.have.property('code', 'permission_denied');
      expect((await drain(operator.asked, false)).node.draining).to.equal(true);
      await rollout().submitTask({ spec: curlTask('waiting', 2) });
      const cancelled = await call(`${ROLLOUT}/CancelTask`, { taskId: 'waiting' }, operator.asked);
      expect(cancelled.task.sessionsByOutcome).to.deep.equal({ cancelled: 2 });
      await drain(operator.asked, true);
    } finally {
      for (const { running } of [reader, operator]) running.child.kill('SIGINT');
    }
    expect((await operator.running.ended).code).to.equal(0);
    await reader.running.ended;
  });

  it('asks for its password on loopback, too, as it has a token that others there have not', async () => {
    expect(dashboard.stdout()).to.contain('"password"');
    for (const path of ['/', '/settings.json']) expect((await fetch(`${base}${path}`)).status).to.equal(401);
    const refused = await call(`${ROLLOUT}/ListTasks`, {}, { base }).catch((error) => error);
    expect(refused.message).to.match(/^401/);
    expect((await fetch(base, asked)).status).to.equal(200);
  });

  it('listens beyond loopback with its password, under any name', async () => {
    const open = await started(tokens.reader.token, '--host', '0.0.0.0');
    try {
      expect(open.password).to.have.length.above(20);
      const at = { ...open.asked, base: open.asked.base.replace('0.0.0.0', '127.0.0.1') };
      expect((await fetch(at.base)).status).to.equal(401);
      expect((await fetch(at.base, at)).status).to.equal(200);
      const { tasks } = await call(`${ROLLOUT}/ListTasks`, {}, at);
      expect(tasks).to.not.equal(undefined);
      const unreadable = { ...at.headers, host: '[', 'content-type': 'application/json' };
      expect((await raw(`/${ROLLOUT}/ListTasks`, unreadable, '{}', at.base)).status).to.equal(200);
    } finally {
      open.running.child.kill('SIGTERM');
      await open.running.ended;
    }
  });

  it('says what does not answer, and goes on when it does', async () => {
    await mesh.kill('llm-proxy');
    const { problems, engines, nodes } = await load.loadMesh(['node-1'], asked);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.contain('the LLM proxy of node node-1');
    expect([engines.length, nodes.length]).to.deep.equal([0, 1]);
    await mesh.start('llm-proxy');
    await eventually('it has engines again', async () => {
      const again = await load.loadMesh(['node-1'], asked);
      return again.problems.length === 0 && again.engines.length === 1;
    });
    const cut = stream(`${ROLLOUT}/WatchTask`, { taskId: 'nothing' }, asked);
    const error = await Array.fromAsync(cut).catch((thrown) => thrown);
    expect(error).to.have.property('code', 'not_found');
  });
});

async function* firstOf<T>(messages: AsyncGenerator<T>): AsyncGenerator<T> {
  for await (const message of messages) {
    yield message;
    return;
  }
}
