// A container engine that is killed at bad moments: what is asked for ends with a reason, and when the engine is back nothing of
// it is left.
import { globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { LABELS } from '../../services/runtime-prewarm/domain/container-config.ts';
import { PROGRAMS_IMAGE, type TestEngine } from '../support/container-engine.ts';
import { LONG_ENGINES, nodeWith } from '../support/engines.ts';
import { startNats } from '../support/nats.ts';
import { eventually, processesWith, startNode, type TestNode } from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';
import { type Moment, openTripwire, type Tripwire } from '../support/tripwire.ts';

interface Case extends Moment {
  readonly when: string;
  /** How a sandbox's life of making, one command and removal ends, at its first fault: one of these. */
  readonly ends: readonly string[];
}

const CASES: readonly Case[] = [
  {
    ...{ when: 'a container is being made', request: /^POST \/containers\/create/, afterMs: 5 },
    ends: ['SANDBOX_FAILED'],
  },
  {
    ...{ when: 'a container is made and not started', request: /^POST \/containers\/\w+\/start/ },
    ends: ['SANDBOX_FAILED'],
  },
  {
    ...{ when: 'a container is being started', request: /^POST \/containers\/\w+\/start/, afterMs: 5 },
    // The second where it was quicker.
    ends: ['SANDBOX_FAILED', 'RUNTIME_LOST'],
  },
  {
    ...{ when: 'a layer is being made', request: /^POST \/commit/, afterMs: 20 },
    ends: ['RUNTIME_LOST'],
  },
  {
    ...{ when: 'a command is being started', request: /^POST \/exec\/\w+\/start/, afterMs: 20 },
    ends: ['RUNTIME_LOST'],
  },
  {
    ...{ when: 'a container is being deleted', request: /^DELETE \/containers\//, afterMs: 1 },
    ends: ['none'],
  },
];
/** Longer than what is not worth a layer. */
const PREPARE = 'sleep 0.6; echo prepared > prepared';
const NAP = sleepMark();
const COMMAND = `setsid ${NAP} & ${NAP} & sleep`;
const [LONG_S, SHORT_S] = [30, 0.1];

for (const kind of LONG_ENGINES) {
  const { backend } = kind;
  describe(`runtime-prewarm: ${backend} is killed`, function () {
    this.timeout(60_000);
    const opened = new AsyncDisposableStack();
    let engine: TestEngine;
    let tripwire: Tripwire;
    let node: TestNode;
    before(async () => {
      const nats = opened.use(await startNats());
      engine = opened.use(await kind.start());
      tripwire = opened.use(await openTripwire(engine));
      node = opened.use(await startNode({ natsUrl: nats.url, node: nodeWith(kind, tripwire) }));
    });
    after(() => opened.disposeAsync());

    for (const [i, { when, ends, ...moment }] of CASES.entries()) {
      it(`while ${when}`, async () => {
        const isLayered = /commit/.test(moment.request.source);
        const spec = {
          ...{ backend, image: PROGRAMS_IMAGE, env: { CASE: `${i}` } },
          ...(isLayered && { prepare: [{ step: { case: 'exec' as const, value: { command: PREPARE } } }] }),
        };
        const killed = tripwire.killAt(moment);
        const life = lifeOf(spec, ends.includes('none') ? SHORT_S : LONG_S);
        const [end] = await Promise.all([life, killed]);
        expect(ends).to.include(end);
        expect(processesWith(NAP)).to.eql([]);
        expect((await node.runtimes.listRuntimes({})).runtimes).to.eql([]);
        await engine.start();
        await eventually('no container is left', async () => (await labelled(engine)).length === 0);
        const left = (): string[] => [...tripwire.containers].flatMap(processesOf);
        await eventually('no process of one is left', () => left().length === 0);
        await expectWorks({ ...spec, env: { CASE: `${i} again` } });
      });
    }

    /** The reason of its first fault. Whether it is deleted at once or by the reaper, it is no lease any more. */
    async function lifeOf(spec: object, seconds: number): Promise<string> {
      try {
        const id = await node.acquire({ spec });
        try {
          await node.sh(id, `${COMMAND} ${seconds}`);
        } finally {
          await node.runtimes.releaseRuntime({ runtimeId: id }).catch(() => {});
        }
        return 'none';
      } catch (error) {
        return (error as { reason: string }).reason;
      }
    }

    async function expectWorks(spec: object): Promise<void> {
      const id = await node.acquire({ spec });
      expect((await node.sh(id, 'echo works')).out).to.equal('works\n');
      await node.runtimes.releaseRuntime({ runtimeId: id });
      await eventually('it is removed', async () => (await labelled(engine)).length === 0);
    }
  });
}

/** Of a container, also one that its engine has forgotten. */
const processesOf = (id: string): string[] =>
  globSync(`/sys/fs/cgroup/{,*/}{docker,libpod_parent}/*${id}*/cgroup.procs`).flatMap((file) =>
    readFileSync(file, 'utf8').split('\n').filter(Boolean),
  );

/** Of any manager. */
const labelled = (engine: TestEngine): Promise<string[]> => engine.containers(LABELS.instance);
