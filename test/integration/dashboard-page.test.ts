// The dashboard's page as a reader has it: loaded with its scripts from a real `polar dashboard` on a real mesh, clicked, typed into.
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Browser, type BrowserPage, type HTMLElement } from 'happy-dom';
import { TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { PolicyService } from '../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { RetryOnly, RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { type Running, startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { curlTask, spoken, waitForEnd } from '../support/tasks.ts';

const WAIT_MS = 60_000;
const SHOWN_MS = 20_000;
const SURE = 'Yes, cancel all sessions';

describe('page of polar dashboard', function () {
  this.timeout(2 * WAIT_MS);
  let mesh: Mesh;
  let dashboard: Running;
  let browser: Browser;
  let page: BrowserPage;
  const rollout = () => createPlainClient(RolloutService, mesh.schedulerUrl);

  before(async () => {
    mesh = await startMesh();
    dashboard = startPolar(['dashboard', '-c', mesh.topologyFile, '--port', '0', '--json', '--actions']);
    await rollout().submitTasks({
      tasks: [{ spec: curlTask('counted', 2) }, { spec: curlTask('other', 1) }],
    });
    await Promise.all(['counted', 'other'].map((id) => waitForEnd(rollout(), id, WAIT_MS)));
    await eventually('it says where it is', () => dashboard.stdout().endsWith('}\n'));
    const { url, password = '' } = JSON.parse(dashboard.stdout()) as { url: string; password?: string };
    const authorization = `Basic ${Buffer.from(`me:${password}`).toString('base64')}`;
    browser = new Browser({
      settings: {
        enableJavaScriptEvaluation: true,
        // The page's own scripts alone are run here.
        suppressInsecureJavaScriptEnvironmentWarning: true,
        fetch: { requestHeaders: [{ headers: { authorization } }] },
      },
    });
    page = browser.newPage();
    await page.goto(url);
    await shows('the mesh', 'Mesh', 'node-1');
  });
  after(async () => {
    await browser?.close();
    dashboard?.child.kill('SIGTERM');
    await dashboard?.ended;
    await mesh?.[Symbol.asyncDispose]();
  });

  const document = () => page.mainFrame.document;
  const main = () => document().querySelector('main')?.textContent ?? '';
  const status = () => document().querySelector('#status')?.textContent;

  /** The page comes to show all of this. */
  const shows = (what: string, ...words: string[]) =>
    eventually(what, () => words.every((word) => main().includes(word)), SHOWN_MS);

  const find = (selector: string): HTMLElement => {
    const found = document().querySelector(`main ${selector}`) as HTMLElement | null;
    expect(found, selector).to.not.equal(null);
    return found as HTMLElement;
  };
  const click = (selector: string) => find(selector).click();
  const go = async (hash: string, title: string) => {
    page.mainFrame.window.location.hash = hash;
    await eventually(`${title} is shown`, () => document().title === `${title} · polar`, SHOWN_MS);
  };

  it('lists tasks, and those alone that a filter leaves', async () => {
    await go('#/tasks', 'tasks');
    await shows('both tasks', 'counted', 'other');
    expect(document().querySelector('header a[aria-current]')?.getAttribute('href')).to.equal('#/tasks');
    (find('input[name=name]') as unknown as { value: string }).value = 'COUNT';
    click('form button[type=submit]');
    await eventually('one is left', () => main().includes('counted') && !main().includes('other'), SHOWN_MS);
    expect(page.mainFrame.window.location.hash).to.equal('#/tasks?name=COUNT');
  });

  it('sets two tasks side by side that were picked', async () => {
    await go('#/tasks', 'tasks');
    await shows('both tasks', 'counted', 'other');
    for (const id of ['counted', 'other']) click(`button[data-subject=${id}]`);
    await shows('the link', 'Set counted and other side by side');
    click('a[href="#/compare/counted/other"]');
    await eventually('it is there', () => document().title.startsWith('compare'), SHOWN_MS);
    await shows('both', 'counted', 'other');
  });

  it('leads from a task to what a session of it said', async () => {
    await go('#/task/counted', 'counted');
    await shows('its sessions', 'Sessions by sample index', 'node-1');
    click('tbody a[href^="#/session/"]');
    await shows('the calls', 'sampled = trained + masked = usage', 'next 1');
    expect(status()).to.equal('');
  });

  it('follows a task while it runs, and cancels it when the reader is sure', async () => {
    await rollout().drainNode({ nodeId: 'node-1' });
    await rollout().submitTask({ spec: curlTask('waiting', 2) });
    await go('#/task/waiting', 'waiting');
    await shows('why it waits', 'nodes draining');
    click('button[data-action=cancel-task]');
    await shows('the question', SURE);
    click('button[data-action=no]');
    await eventually('it was withdrawn', () => !main().includes(SURE), SHOWN_MS);
    click('button[data-action=cancel-task]');
    await eventually('it asks', () => document().querySelector('main button[data-sure]') !== null, SHOWN_MS);
    click('button[data-sure]');
    await shows('how it ended', '2 cancelled');
    expect(document().querySelector('main button[data-action=cancel-task]')).to.equal(null);
    await rollout().drainNode({ nodeId: 'node-1', undo: true });
  });

  it('shows a session that runs grow, without being asked again', async () => {
    // Written so that what it says is not in the task, which a page shows too.
    const command = `echo on'e'; ${spoken('x')}; echo tw'o'; sleep 600`;
    const spec = create(TaskSpecSchema, {
      ...{ taskId: 'running', instruction: 'Wait.', numSamples: 1 },
      harness: { name: 'shell', command: { command } },
      evaluator: { strategy: 'session_completed' },
    });
    // Its call waits until the page has shown what came before.
    const policy = createPlainClient(PolicyService, mesh.proxyUrl);
    await policy.pause({});
    await rollout().submitTask({ spec });
    await go('#/task/running', 'running');
    await shows('its session', 'running');
    click('tbody a[href^="#/session/"]');
    await shows('its output', 'one\n');
    expect(main()).to.not.include('two\n');
    await policy.resume({});
    await shows('the rest of it', 'one\ntwo\n');
    await rollout().cancelTask({ taskId: 'running' });
    await shows('its end', 'cancelled');
  });

  it('follows what is tried again', async () => {
    const spec = create(TaskSpecSchema, {
      ...{ taskId: 'again', instruction: 'Fail.', numSamples: 1 },
      harness: { name: 'shell', command: { command: 'exit 3' } },
      evaluator: { strategy: 'session_completed' },
    });
    await rollout().submitTask({ spec });
    await waitForEnd(rollout(), 'again', WAIT_MS);
    const { sessions } = await rollout().listSessions({ taskId: 'again' });
    await go('#/task/again', 'again');
    await shows('its end', '1 ended', 'HARNESS_EXIT');
    await rollout().drainNode({ nodeId: 'node-1' });
    await rollout().retrySessions({ taskId: 'again', only: RetryOnly.FAILED });
    await shows('that it waits', 'nodes draining');
    await rollout().drainNode({ nodeId: 'node-1', undo: true });
    await shows('its second end', '1 ended', 'HARNESS_EXIT');
    const id = sessions[0]?.sessionId ?? '';
    const attempts = () => (main().match(/HARNESS_EXIT at the harness/g) ?? []).length;
    await go(`#/session/${id}`, id);
    await eventually('its attempts are shown', () => attempts() === 3, SHOWN_MS);
    await rollout().retrySessions({ taskId: 'again', only: RetryOnly.FAILED });
    await eventually('one more is shown', () => attempts() === 4, SHOWN_MS);
  });

  it('says what is not there', async () => {
    await go('#/task/nobody', 'nobody');
    await shows('it', 'not_found', 'nobody');
    expect(main()).to.not.include('Loading');
    await rollout().submitTask({ spec: curlTask('nobody', 1) });
    await shows('what is there since', 'Sessions by sample index');
    await go('#/', 'mesh');
    await shows('the mesh', 'Mesh', 'node-1');
    expect(status()).to.equal('');
  });
});
