// The dashboard's page where parts of a mesh say nothing, with stand-ins for its services: what others tell is shown all the same.
import { once } from 'node:events';
import { type Client, createClient, createRouterTransport, type HandlerContext } from '@connectrpc/connect';
import { expect } from 'chai';
import { Browser, type BrowserPage } from 'happy-dom';
import type { DashboardMesh } from '../../clients/dashboard/rpcs.ts';
import { type RunningDashboard, startDashboard } from '../../clients/dashboard/server.ts';
import { SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { ProxyService } from '../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService, WaitReason } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { eventually } from '../support/eventually.ts';

const SHOWN_MS = 20_000;
const { QUEUED, RUNNING } = SessionState;

describe('page of a dashboard where a part of the mesh is silent', function () {
  this.timeout(3 * SHOWN_MS);
  let dashboard: RunningDashboard;
  let browser: Browser;
  let page: BrowserPage;
  const session = { sessionId: 's-0', taskId: 't', state: QUEUED, reward: 1 };
  /** Watches that are open. */
  let watches = 0;

  const silence = async (_: unknown, { signal }: HandlerContext): Promise<never> => {
    await once(signal, 'abort');
    throw signal.reason;
  };
  const mesh = (): DashboardMesh => {
    const transport = createRouterTransport((router) => {
      router.service(RolloutService, {
        listNodes: () => ({ nodes: [{ nodeId: 'mute', healthy: true }] }),
        listQueues: () => ({}),
        listTasks: () => ({}),
        getTask: () => ({ task: { taskId: 't' } }),
        listSessions: () => ({ sessions: [session] }),
        getSession: () => ({
          session,
          ...(session.state === QUEUED && { waiting: { reason: WaitReason.TURN, message: 'others first' } }),
        }),
        async *watchTask(_, { signal }) {
          watches++;
          try {
            yield {};
            await once(signal, 'abort');
          } finally {
            watches--;
          }
        },
      });
      router.service(TrajectoryService, {
        getTrajectory: silence,
        // biome-ignore lint/correctness/useYield: it says nothing.
        async *exportSession(request, context) {
          await silence(request, context);
        },
      });
      router.service(ProxyService, { listEngines: silence });
      router.service(HarnessService, { getSessionLogs: silence });
    });
    const proxy: Client<typeof ProxyService> = createClient(ProxyService, transport);
    return {
      rollout: createClient(RolloutService, transport),
      trajectories: createClient(TrajectoryService, transport),
      nodes: new Map([['mute', { proxy, harness: createClient(HarnessService, transport) }]]),
    };
  };

  before(async () => {
    const free = { host: '127.0.0.1', token: false, actions: false, password: undefined };
    dashboard = await startDashboard({ ...free, port: 0, mesh: mesh() });
    browser = new Browser({
      // The page's own scripts alone are run here.
      settings: { enableJavaScriptEvaluation: true, suppressInsecureJavaScriptEnvironmentWarning: true },
    });
    page = browser.newPage();
    await page.goto(`http://127.0.0.1:${dashboard.port}/`);
  });
  after(async () => {
    await browser?.close();
    await dashboard?.close();
  });

  const main = () => page.mainFrame.document.querySelector('main')?.textContent ?? '';
  const shows = (...words: string[]) =>
    eventually(words.join(), () => words.every((word) => main().includes(word)), SHOWN_MS);
  const go = (hash: string) => {
    page.mainFrame.window.location.hash = hash;
  };
  const look = (away: boolean) => {
    const { document, Event } = page.mainFrame.window;
    Object.defineProperty(document, 'hidden', { configurable: true, value: away });
    document.dispatchEvent(new Event('visibilitychange'));
  };

  it('tells a mesh, and which node does not tell its engines', async () => {
    await shows('1 of 1', 'the LLM proxy of node mute does not tell its engines: nothing came for 5 s');
  });

  it('tells a session, and why it waits for as long as it does', async () => {
    go('#/session/s-0');
    await shows('Session s-0', 'turn: others first');
    session.state = RUNNING;
    await shows('running');
    expect(main()).to.not.contain('others first');
  });

  it('watches a task for as long as it is looked at: a browser has six connections for all of its pages', async () => {
    go('#/task/t');
    await shows('Task t', 's-0');
    expect(watches).to.equal(1);
    look(true);
    await eventually('the watch is over', () => watches === 0, SHOWN_MS);
    look(false);
    await eventually('it is opened again', () => watches === 1, SHOWN_MS);
    expect(page.mainFrame.document.querySelector('#status')?.textContent).to.equal('');
  });
});
