// From inside a session of a whole mesh: the host, the mesh and the session beside it cannot be reached; model calls can.
import { readdirSync, readFileSync } from 'node:fs';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import { polar } from '../support/cli.ts';
import { PROGRAMS_IMAGE } from '../support/container-engine.ts';
import { LONG_ENGINES, nodeWith } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { hostBait, PROBE } from '../support/host-bait.ts';
import { isLong } from '../support/long.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { bwrapIsThere } from '../support/runtime-prewarm.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const TARGET = '/polar/session/probe.py';
const NEIGHBOUR_PORT = 7_351;
const LISTEN = `python3 -ISc '
import socket, time
for where in ((socket.AF_INET, ("127.0.0.1", ${NEIGHBOUR_PORT})), (socket.AF_UNIX, chr(0) + "${NEIGHBOUR_PORT}")):
    server = socket.socket(where[0]); server.bind(where[1]); server.listen()
    globals()[str(where[0])] = server
time.sleep(600)'`;

/** apptainer's sandboxes are bubblewrap's, podman's are docker's: here, beside the probes of each alone, in `npm run test:containers`. */
const BACKENDS = [
  ...(bwrapIsThere ? [{ backend: 'bubblewrap', image: '' }] : []),
  ...(isLong && withoutApptainer === undefined ? [{ backend: 'apptainer', image: '' }] : []),
  ...LONG_ENGINES.map(({ backend }) => ({ backend, image: PROGRAMS_IMAGE })),
];

if (BACKENDS.length > 0) {
  describe('isolation in a mesh', function () {
    this.timeout(180_000);
    const opened = new AsyncDisposableStack();
    let mesh: Mesh;
    let rollout: Client<typeof RolloutService>;
    before(async () => {
      const engines = await Promise.all(
        LONG_ENGINES.map(async (kind) => nodeWith(kind, opened.use(await kind.start()))),
      );
      mesh = opened.use(await startMesh({ node: Object.assign({}, ...engines), path: pathWithApptainer }));
      rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    });
    after(() => opened.disposeAsync());

    for (const runtime of BACKENDS) {
      it(`lets no probe of a harness through with ${runtime.backend}, and still serves its model calls`, async () => {
        await using bait = await hostBait(mesh.folder);
        const neighbour = await startNeighbour(runtime);
        const session = await runProbe(runtime, {
          ...bait.env,
          PROBE_OTHER_FILE: mesh.nodeFolder,
          PROBE_HOST_ENV: mesh.topologyFile,
          PROBE_MESH: meshAddresses(mesh).join(' '),
          PROBE_NEIGHBOUR: neighbour.sessionId,
          PROBE_NEIGHBOUR_PORT: String(NEIGHBOUR_PORT),
          PROBE_SECRET: [...neighbour.capability].reverse().join(''),
          ...(runtime.image !== '' && { PROBE_IMAGE: 'yes' }),
        });
        const lines = await outputOf(session.sessionId);
        expect(lines.filter((line) => !line.startsWith('ok '))).to.eql([]);
        expect(lines.length).to.be.greaterThan(55);
        expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
        expect(session.stats?.calls).to.equal(1);
        // The probe of an outside machine has no route.
        const [attempt] = session.attempts;
        expect(attempt?.denied?.count ?? 0).to.equal(bait.outside.length);
        await rollout.cancelTask({ taskId: `neighbour-${runtime.backend}` });
      });
    }

    it('keeps what a session was not let connect to with its attempt, and shows it', async () => {
      const { folder, schedulerUrl } = mesh;
      const script = (where: string) => `curl -sS http://${where}/; curl -sS https://${where}/; true`;
      const spec = curlTask('denied', 1, 1, {
        harness: { name: 'shell', modelName: 'm', command: { command: script('site.test') } },
        runtime: {
          ...BACKENDS[0],
          prepare: [{ step: { case: 'exec', value: { command: script('prepare.test') } } }],
          network: {
            egress: [{ host: 'example.com', port: 443 }],
            prepareEgress: [{ host: 'example.com', port: 443 }],
          },
        },
      });
      await rollout.submitTask({ spec });
      const [session] = await waitForEnd(rollout, 'denied', 60_000);
      const targets = ['prepare.test:80', 'prepare.test:443', 'site.test:80', 'site.test:443'];
      expect(session?.attempts[0]?.denied).to.deep.include({ count: 4, targets });
      const id = session?.sessionId ?? '';
      const { stdout } = await polar(['status', id, '--rollout-url', schedulerUrl], { cwd: folder });
      expect(stdout).to.contain(`attempt 1: 4 connection(s) denied: ${targets.join(', ')}`);
    });

    /** Its harness listens; it is there until its task is cancelled. */
    async function startNeighbour(runtime: { backend: string; image: string }) {
      const taskId = `neighbour-${runtime.backend}`;
      const harness = { name: 'shell', modelName: 'm', command: { command: LISTEN } };
      await rollout.submitTask({ spec: curlTask(taskId, 1, 1, { harness, runtime }) });
      let capability = '';
      await eventually(
        'the neighbour listens',
        () => {
          capability = capabilityOfListener(taskId);
          return capability !== '';
        },
        60_000,
      );
      const { sessions } = await rollout.listSessions({ taskId });
      return { sessionId: sessions[0]?.sessionId ?? '', capability };
    }

    async function runProbe(
      runtime: { backend: string; image: string },
      env: Record<string, string>,
    ): Promise<Session> {
      const taskId = `probe-${runtime.backend}`;
      const call = `curl -sS --fail -o /dev/null "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d '{"model":"m","messages":[{"role":"user","content":"hi"}]}'`;
      const command = `${call} && exec python3 -ISu ${TARGET}`;
      const spec = curlTask(taskId, 1, 1, {
        harness: { name: 'shell', modelName: 'm', command: { command }, env },
        runtime: {
          ...runtime,
          prepare: [{ step: { case: 'uploadFile', value: { target: TARGET, content: PROBE } } }],
        },
      });
      await rollout.submitTask({ spec });
      const [session] = await waitForEnd(rollout, taskId, 120_000);
      return session as Session;
    }

    async function outputOf(sessionId: string): Promise<string[]> {
      const harnesses = createServiceClient(HarnessService, mesh.harnessUrl);
      const { stdout, stderr } = await harnesses.getSessionLogs({ sessionId });
      const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
      return `${text(stdout)}${text(stderr)}`.trim().split('\n');
    }
  });
}

/** Of every process of the mesh that listens. */
const meshAddresses = ({ schedulerUrl, reconstructorUrl, proxyUrl, harnessUrl, engineUrl, nats }: Mesh) =>
  [schedulerUrl, reconstructorUrl, proxyUrl, harnessUrl, engineUrl, nats.url].map((url) => new URL(url).host);

/** As the host's root sees it in the environment of the neighbour's harness; empty until that listens. */
function capabilityOfListener(taskId: string): string {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
      const listens = readFileSync(`/proc/${pid}/net/unix`, 'latin1').includes(`@${NEIGHBOUR_PORT}`);
      if (!listens || !environment.includes(`TASK_ID=${taskId}`)) continue;
      return (
        environment.find((one) => one.startsWith('OPENAI_API_KEY='))?.slice('OPENAI_API_KEY='.length) ?? ''
      );
    } catch {
      // It has ended.
    }
  }
  return '';
}
