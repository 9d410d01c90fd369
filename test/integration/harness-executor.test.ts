import { readdirSync, readFileSync } from 'node:fs';
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { PauseMode } from '../../gen/ts/polar/event/v1/policy_pb.js';
import type { Fact, Failed, Ran } from '../../gen/ts/polar/event/v1/work_pb.js';
import { RunWorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { failure } from '../../services/common/errors.ts';
import { LEASE_MARGIN_MS, LEASE_MAX_MS, PAUSE_TTL_MAX_MS } from '../../services/common/limits.ts';
import { PolicyWatch } from '../../services/common/nats/policy.ts';
import { STREAMS, subjectOfKey } from '../../services/common/nats/streams.ts';
import { HARNESSES } from '../../services/common/specs/catalogue.ts';
import { pausing, resumed } from '../../services/llm-proxy/domain/policy.ts';
import { eventually } from '../support/eventually.ts';
import { newRef, startNode, type TestNode, type WorkCase } from '../support/node.ts';
import { sleepMark } from '../support/sleep-mark.ts';
import { type StandInProxy, startStandInProxy } from '../support/stand-in-proxy.ts';

const INSTRUCTION = "@fix 'it' $HOME\n-and {{more}}";

/** One call to the LLM proxy. */
const ONE_CALL = `python3 -c '${[
  'import json, os, urllib.request as u',
  'body = json.dumps({"model": "m", "messages": []}).encode()',
  'print(u.urlopen(u.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)).read().decode())',
].join('\n')}'`;

const shellRun = (runtimeId: string, command: string, timeoutMs = 20_000): WorkCase => ({
  case: 'run',
  value: create(RunWorkSchema, {
    runtimeId,
    instruction: INSTRUCTION,
    timeoutMs: BigInt(timeoutMs),
    harness: {
      name: 'shell',
      modelName: 'some-model',
      command: { command, env: { D: 'command' } },
      env: { C: 'harness', D: 'harness' },
    },
    sampling: { seedBase: 7 },
  }),
});

const ranOf = ({ kind }: Fact): Ran => {
  if (kind.case === 'ran') return kind.value;
  throw new Error(`not ran: ${kind.case === 'failed' ? kind.value.failure?.message : kind.case}`);
};
/** Arguments of a process with a NUL behind each; empty where there is none. */
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}
const failedOf = ({ kind }: Fact): Failed => {
  if (kind.case === 'failed') return kind.value;
  throw new Error(`not failed: ${kind.case}`);
};

describe('harness executor', () => {
  let node: TestNode;
  before(async () => {
    node = await startNode(['runtime-prewarm', 'harness-executor']);
  });
  after(() => node[Symbol.asyncDispose]());

  const harnesses = () =>
    createServiceClient(HarnessService, `http://127.0.0.1:${node.ports['harness-executor']}`);
  const proxy = (options: object = {}): Promise<StandInProxy> => startStandInProxy({ node, ...options });
  /** Asks whether a further session cannot be closed yet. */
  const closing = (): (() => boolean) => {
    const told = (): number =>
      node.log('harness-executor').split('closing the session is tried again').length;
    const before = told();
    return () => told() > before;
  };
  const operationOf = async (sessionId: string) =>
    (await (await node.bus.kv('capabilities')).get(`${sessionId}.1`))?.operation;
  const entryKeptS = async (sessionId: string): Promise<number> => {
    const query = { last_by_subj: subjectOfKey('capabilities', `${sessionId}.1`) };
    const { header } = await node.bus.jsm.streams.getMessage('KV_polar_capabilities', query);
    return Number.parseInt(header.get('Nats-TTL'), 10);
  };
  const stdout = async (sessionId: string): Promise<string> => {
    const logs = await harnesses().getSessionLogs({ sessionId });
    return Buffer.from(logs.stdout).toString();
  };

  it('runs a command with the instruction in three places, and says how it ended', async () => {
    await using standIn = await proxy({ closing: () => ({ calls: 3, firstSeq: 5n, lastSeq: 9n }) });
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    const command =
      'test {{instruction}} = "$POLAR_INSTRUCTION" && cat "$POLAR_INSTRUCTION_FILE" && echo problem >&2';
    await node.work(ref, shellRun(runtimeId, command));
    const fact = await node.fact(ref);
    const { outcome, exitCode, calls, failure: why } = ranOf(fact);
    expect([outcome, exitCode, why]).to.deep.equal([Outcome.COMPLETED, 0, undefined]);
    expect(calls).to.include({ calls: 3, firstSeq: 5n, lastSeq: 9n });
    expect(fact.ref).to.deep.equal(ref);
    expect(standIn.closed).to.deep.equal([`${ref.sessionId}.1`]);
    expect(await stdout(ref.sessionId)).to.equal(INSTRUCTION);
    const logs = await harnesses().getSessionLogs({ sessionId: ref.sessionId, attempt: 1 });
    expect([Buffer.from(logs.stderr).toString(), logs.exitCode, logs.attempt]).to.deep.equal([
      'problem\n',
      0,
      1,
    ]);
  });

  it('stops the clock of a run while calls are held', async () => {
    await using _ = await proxy();
    const stop = new AbortController();
    const policy = await PolicyWatch.open({ bus: node.bus, signal: stop.signal });
    const started = (sessionId: string) => async () =>
      (await stdout(sessionId).catch(() => '')).includes('begun');
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    await node.work(ref, shellRun(runtimeId, 'echo begun; sleep 4', 2_500));
    await eventually('it runs', started(ref.sessionId));
    const behindMs = Date.now() - 3_600_000;
    const pause = { id: 'p', mode: PauseMode.KEEP, nowMs: behindMs, ttlMs: PAUSE_TTL_MAX_MS };
    await policy.update((now) => pausing(now, pause), stop.signal);
    await sleep(2_500);
    await policy.update((now) => resumed(now, 'p', 2_500), stop.signal);
    expect(ranOf(await node.fact(ref)).outcome).to.equal(Outcome.COMPLETED);
    const other = newRef();
    await node.work(other, shellRun(await node.acquire(other), 'sleep 60', 300));
    expect(ranOf(await node.fact(other)).outcome).to.equal(Outcome.TIMEOUT);
    stop.abort();
  });

  it('does so, too, for a run that begins while they are held', async () => {
    await using _ = await proxy();
    const stop = new AbortController();
    const policy = await PolicyWatch.open({ bus: node.bus, signal: stop.signal });
    const pause = { id: 'q', mode: PauseMode.KEEP, nowMs: Date.now(), ttlMs: PAUSE_TTL_MAX_MS };
    await policy.update((now) => pausing(now, pause), stop.signal);
    const ref = newRef();
    await node.work(ref, shellRun(await node.acquire(ref), 'sleep 1.5', 500));
    expect(ranOf(await node.fact(ref)).outcome).to.equal(Outcome.COMPLETED);
    await policy.update((now) => resumed(now, 'q', 2_000), stop.signal);
    stop.abort();
  });

  it('gives the environment in its order: injected, runtime, harness, command', async () => {
    await using _ = await proxy();
    const ref = newRef();
    const runtimeId = await node.acquire(ref, { env: { SESSION_DIR: '/r', B: 'runtime', C: 'r', D: 'r' } });
    await node.work(ref, shellRun(runtimeId, 'echo "$SESSION_ID $TASK_ID $SESSION_DIR $B $C $D"'));
    expect(ranOf(await node.fact(ref)).outcome).to.equal(Outcome.COMPLETED);
    expect(await stdout(ref.sessionId)).to.equal(
      `${ref.sessionId} ${ref.taskId} /r runtime harness command\n`,
    );
  });

  it('opens the proxy for this attempt alone, and only while it runs', async () => {
    await using standIn = await proxy();
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    await node.work(ref, shellRun(runtimeId, ONE_CALL));
    expect(ranOf(await node.fact(ref)).calls?.calls).to.equal(1);
    const { capability } = standIn.calls[0]!;
    expect(capability?.ref).to.deep.equal(ref);
    expect(capability).to.include({ modelName: 'some-model' });
    expect(capability?.sampling?.seedBase).to.equal(7);
    expect(Number(capability?.expireMs)).to.be.greaterThan(Date.now() + PAUSE_TTL_MAX_MS);
    await eventually('the capability is deleted', async () => (await operationOf(ref.sessionId)) === 'DEL');
    expect(await entryKeptS(ref.sessionId), 'as long as it is valid').to.equal(LEASE_MAX_MS / 1_000 + 20);
  });

  it('leases the sandbox for as long as the run may take', async () => {
    await using _ = await proxy();
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    await node.work(ref, shellRun(runtimeId, 'true'));
    expect(ranOf(await node.fact(ref)).outcome).to.equal(Outcome.COMPLETED);
    const { runtimes } = await node.runtimes.listRuntimes({});
    const leased = runtimes.find((runtime) => runtime.runtimeId === runtimeId);
    const leftMs = timestampMs(leased!.expireTime!) - Date.now();
    expect(leftMs, 'it was acquired for ten minutes').to.be.greaterThan(LEASE_MARGIN_MS / 2);
  });

  it('asks the sandbox for the proxy where an older scheduler or runtime-prewarm did not tell of it', async () => {
    await using standIn = await proxy();
    const ref = newRef();
    const owner = { sessionId: ref.sessionId, attempt: ref.attempt, purpose: 'run' };
    const spec = { backend: node.backend };
    const { runtime } = await node.runtimes.acquireRuntime({ spec, owner, ttl: { seconds: 600n } });
    await node.work(ref, shellRun(runtime!.runtimeId, ONE_CALL));
    const { outcome, calls } = ranOf(await node.fact(ref));
    expect([outcome, calls?.calls]).to.deep.equal([Outcome.COMPLETED, 1]);
    expect(standIn.calls[0]?.capability?.ref).to.deep.equal(ref);
  });

  it('reports a harness that fails as ran', async () => {
    await using _ = await proxy();
    const ref = newRef();
    await node.work(ref, shellRun(await node.acquire(ref), 'exit 3'));
    const ran = ranOf(await node.fact(ref));
    expect([ran.outcome, ran.exitCode]).to.deep.equal([Outcome.HARNESS_ERROR, 3]);
    expect(ran.failure).to.include({ reason: 'HARNESS_EXIT', infrastructure: false });
  });

  it('reports a spent budget as ran, and leaves no process', async () => {
    await using _ = await proxy();
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    const nap = sleepMark();
    await node.work(ref, shellRun(runtimeId, `echo begun; ${nap} & ${nap}`, 1_500));
    const fact = await node.fact(ref);
    const ran = ranOf(fact);
    expect(ran.outcome).to.equal(Outcome.TIMEOUT);
    expect(ran.failure).to.include({ reason: 'HARNESS_TIMEOUT', infrastructure: false });
    expect(Number(fact.durationMs)).to.be.at.least(1_500);
    expect(await stdout(ref.sessionId)).to.equal('begun\n');
    const left = readdirSync('/proc').filter((pid) => commandOf(pid).includes(nap.replace(' ', '\0')));
    expect(left).to.deep.equal([]);
  });

  it('blames the infrastructure where the last model call failed for good', async () => {
    const lastFailure = failure('ENGINE_UNAVAILABLE', 'the engine is down');
    await using _ = await proxy({ closing: () => ({ calls: 1, lastFailure }) });
    for (const end of ['exit 1', 'exit 0']) {
      const ref = newRef();
      await node.work(ref, shellRun(await node.acquire(ref), end));
      const failed = failedOf(await node.fact(ref));
      expect(failed.stage, end).to.equal('run');
      expect(failed.failure, end).to.deep.equal(lastFailure);
    }
  });

  it('blames the proxy where a failed harness could not reach it', async function () {
    if (node.backend === 'process') this.skip();
    const ref = newRef();
    const isClosing = closing();
    const connect = 'import os, urllib.request as u; u.urlopen(os.environ["OPENAI_BASE_URL"])';
    await node.work(ref, shellRun(await node.acquire(ref), `python3 -c '${connect}'`));
    await eventually('the session cannot be closed', isClosing);
    await using _ = await proxy();
    const { failure: why } = failedOf(await node.fact(ref));
    expect(why).to.include({ reason: 'PROXY_UNAVAILABLE', infrastructure: true });
  });

  for (const [what, rest] of [
    ['ended well', '; true'],
    ['used up its time', '; sleep 60'],
  ] as const) {
    it(`blames the proxy that was away at the last try of a harness that ${what}`, async function () {
      if (node.backend === 'process') this.skip();
      const ref = newRef();
      const isClosing = closing();
      const call = 'curl -sS -m 0.5 "$OPENAI_BASE_URL/models"';
      await node.work(ref, shellRun(await node.acquire(ref), `${call}${rest}`, 4_000));
      await eventually('the session cannot be closed', isClosing);
      await using _ = await proxy();
      const { failure: why } = failedOf(await node.fact(ref));
      expect(why).to.include({ reason: 'PROXY_UNAVAILABLE', infrastructure: true });
    });
  }

  it('grades a harness that reached the proxy after it was away', async function () {
    if (node.backend === 'process') this.skip();
    const ref = newRef();
    const call = 'curl -sS -m 0.5 "$OPENAI_BASE_URL/models"; echo tried';
    const again = `until ${ONE_CALL}; do sleep 0.1; done 2> /dev/null`;
    await node.work(ref, shellRun(await node.acquire(ref), `${call}; ${again}`));
    const output = (): Promise<string> => stdout(ref.sessionId).catch(() => '');
    await eventually('it has tried', async () => (await output()).includes('tried'));
    await using _ = await proxy();
    const { outcome, calls } = ranOf(await node.fact(ref));
    expect([outcome, calls?.calls]).to.deep.equal([Outcome.COMPLETED, 1]);
  });

  it('closes a session at a proxy that is not ready at once', async () => {
    await using standIn = await proxy({ refuse: 3 });
    const ref = newRef();
    await node.work(ref, shellRun(await node.acquire(ref), 'true'));
    expect(ranOf(await node.fact(ref)).outcome).to.equal(Outcome.COMPLETED);
    expect(standIn.closed).to.deep.equal([`${ref.sessionId}.1`]);
  });

  it('reports a sandbox that goes away as lost', async () => {
    await using _ = await proxy();
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    await node.work(ref, shellRun(runtimeId, 'echo begun; sleep 60'));
    const output = (): Promise<string> => stdout(ref.sessionId).catch(() => '');
    await eventually('it has begun', async () => (await output()).includes('begun'));
    await node.runtimes.releaseRuntime({ runtimeId });
    const { failure: why, stage } = failedOf(await node.fact(ref));
    expect(why).to.include({ reason: 'RUNTIME_LOST', infrastructure: true });
    expect(stage).to.equal('run');
  });

  it('reports a sandbox that was never there as lost', async () => {
    const ref = newRef();
    await node.work(ref, shellRun('rt-none', 'true'));
    expect(failedOf(await node.fact(ref)).failure).to.include({ reason: 'RUNTIME_LOST' });
  });

  it('runs an attempt once, however often it is asked to', async () => {
    await using _ = await proxy();
    const ref = newRef();
    const run = shellRun(await node.acquire(ref), 'echo once >> count; sleep 1; cat count');
    await node.work(ref, run, `${ref.sessionId}-a`);
    await node.work(ref, run, `${ref.sessionId}-b`);
    expect(ranOf(await node.fact(ref)).outcome).to.equal(Outcome.COMPLETED);
    await node.work(ref, run, `${ref.sessionId}-c`);
    await sleep(500);
    expect(await stdout(ref.sessionId)).to.equal('once\n');
    expect(node.facts.filter((fact) => fact.ref?.sessionId === ref.sessionId)).to.have.length(1);
  });

  it('tells how a run ended when the mesh can store it again, and runs nothing twice', async () => {
    await using _ = await proxy();
    const ref = newRef();
    const run = shellRun(await node.acquire(ref), 'echo once >> count; cat count');
    const { name, max_bytes = -1 } = STREAMS.facts;
    const { config } = await node.bus.jsm.streams.info(name);
    await node.bus.jsm.streams.update(name, { ...config, max_bytes: 1 });
    try {
      await node.work(ref, run);
      await eventually('it cannot be told', () => node.log('harness-executor').includes('NATS_STORE_FULL'));
    } finally {
      await node.bus.jsm.streams.update(name, { ...config, max_bytes });
    }
    expect(ranOf(await node.fact(ref)).outcome).to.equal(Outcome.COMPLETED);
    expect(await stdout(ref.sessionId)).to.equal('once\n');
  });

  it('ends the credential when the mesh can store that again', async () => {
    await using _ = await proxy();
    const ref = newRef();
    const runtimeId = await node.acquire(ref);
    await node.work(ref, shellRun(runtimeId, 'until [ -e go ]; do sleep 0.05; done'));
    await eventually('it is granted', async () => (await operationOf(ref.sessionId)) === 'PUT');
    expect(await entryKeptS(ref.sessionId)).to.equal(LEASE_MAX_MS / 1_000 + 20);
    const { config } = await node.bus.jsm.streams.info('KV_polar_capabilities');
    const onlyNew = (discard_new_per_subject: boolean) =>
      node.bus.jsm.streams.update(config.name, { ...config, discard_new_per_subject });
    await onlyNew(true);
    try {
      const go = { target: '/polar/session/workspace/go', content: new Uint8Array() };
      await node.runtimes.putFiles({ runtimeId, files: [go] });
      expect(ranOf(await node.fact(ref)).outcome).to.equal(Outcome.COMPLETED);
      await eventually('it is refused', () =>
        node.log('harness-executor').includes('capability cannot be deleted yet'),
      );
    } finally {
      await onlyNew(false);
    }
    await eventually('it is deleted', async () => (await operationOf(ref.sessionId)) === 'DEL');
  });

  it('refuses a harness that it does not have, for good', async () => {
    const ref = newRef();
    await node.work(ref, { case: 'run', value: { runtimeId: 'rt-none', harness: { name: 'vim' } } });
    const { failure: why } = failedOf(await node.fact(ref));
    expect(why).to.include({ reason: 'UNKNOWN_HARNESS', infrastructure: false });
  });

  it('refuses a harness that no node can install, and says what to do', async () => {
    const ref = newRef();
    await node.work(ref, { case: 'run', value: { runtimeId: 'rt-none', harness: { name: 'swe_agent' } } });
    const { failure: why } = failedOf(await node.fact(ref));
    expect(why?.reason).to.equal('HARNESS_INSTALL_FAILED');
    expect(why?.message).to.contain('mini_swe_agent');
  });

  it('lists its adapters', async () => {
    const list = await harnesses().listHarnesses({});
    expect(list.harnesses.map(({ name }) => name)).to.deep.equal([...HARNESSES]);
    const codex = list.harnesses.find(({ name }) => name === 'codex');
    expect([codex?.version, codex?.dialect]).to.deep.equal(['0.169.0', 'openai-responses']);
    expect(list.harnesses[0]?.installed).to.equal(true);
  });

  it('names what is wrong with a question for logs', async () => {
    const asks = [
      (sessionId: string) => harnesses().getSessionLogs({ sessionId }),
      (sessionId: string) => harnesses().listSessionArtifacts({ sessionId }),
      (sessionId: string) => harnesses().getSessionArtifact({ sessionId, path: '/etc/passwd' }),
    ];
    for (const ask of asks) {
      const reason = (id: string) =>
        ask(id).then(
          () => 'none',
          (error) => error.reason,
        );
      expect(await reason('nobody-0')).to.equal('NOT_FOUND');
      expect(await reason('../../etc/passwd')).to.equal('INVALID_REQUEST');
    }
  });
});
