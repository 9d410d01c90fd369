import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { Stragglers } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../errors.ts';
import { parseTaskFile, readTaskFile, taskFileSchema } from './task-file.ts';

const TASK = {
  task_id: 'sum-1',
  instruction: 'Add.',
  agent: { harness: 'shell', custom_shell: { command: 'python3 agent.py' } },
};
const EVALUATOR = {
  strategy: 'test_on_output',
  config: { test_command: 'true', expected_output_json: { a: 'PASSED' } },
};

/** What a task has beside TASK, in short. */
const changed = (task: object): string => {
  const base = Object.entries(TASK).map(([key, value]) => [key, JSON.stringify(value)]);
  const known = new Map(base as [string, string][]);
  const other = Object.entries(task).filter(([key, value]) => known.get(key) !== JSON.stringify(value));
  return JSON.stringify(other.length > 0 ? Object.fromEntries(other) : 'left out');
};

/** `path: description` of every fault of a task file. */
function faultsIn(text: string, file = 'task.yaml'): string[] {
  try {
    parseTaskFile(text, file);
  } catch (error) {
    if (!(error instanceof PolarError)) throw error;
    expect(error.reason).to.equal('INVALID_TASK');
    expect(error.message).to.contain(file);
    for (const { field } of error.fields) expect(error.message).to.contain(field);
    return error.fields.map(({ field, description }) => `${field}: ${description}`);
  }
  return [];
}
const fieldsIn = (task: object): string[] =>
  faultsIn(stringify(task)).map((fault) => fault.slice(0, fault.indexOf(': ')));

describe('a task file', () => {
  it('of the reference system is read unchanged', () => {
    const spec = parseTaskFile(
      stringify({
        ...TASK,
        num_samples: 8,
        timeout_seconds: 300,
        dispatch_priority: 7,
        runtime: {
          backend: 'bubblewrap',
          image: 'swe',
          workdir: '/testbed',
          env: { A: 'b' },
          cpus: 2,
          memory_mb: 512,
          network: 'host',
          prepare: [
            {
              command: 'make',
              cwd: '/testbed',
              env: { C: 'd' },
              max_attempts: 3,
              retry_backoff_seconds: 0.5,
            },
          ],
          eval_prepare: [],
        },
        builder: { strategy: 'prefix_merging', config: {} },
        evaluator: { ...EVALUATOR, env: { E: 'f' }, refresh_runtime: true },
        callback_url: null,
        metadata: { agent_timeout: 120, eval_sampling_seed_base: 40, group: { x: [1] } },
      }),
      'task.yaml',
    );
    expect(spec).to.include({ taskId: 'sum-1', numSamples: 8, dispatchPriority: 7 });
    expect(spec.budgets?.run && durationMs(spec.budgets.run)).to.equal(120_000);
    expect(spec.sampling?.seedBase).to.equal(40);
    expect(spec.metadata?.['group']).to.deep.equal({ x: [1] });
    expect(spec.runtime).to.include({ backend: 'bubblewrap', image: 'swe', workdir: '/testbed' });
    expect(spec.runtime).to.include({ cpus: 2, memoryMb: 512 });
    const made = {
      command: 'make',
      cwd: '/testbed',
      env: { C: 'd' },
      maxAttempts: 3,
      retryBackoff: durationFromMs(500),
    };
    expect(spec.runtime?.prepare[0]?.step).to.deep.include({ case: 'exec' });
    expect(spec.runtime?.prepare[0]?.step.value).to.deep.include(made);
    expect(spec.runtime?.evalPrepare?.steps).to.deep.equal([]);
    expect(spec.harness?.command?.command).to.equal('python3 agent.py');
    expect(spec.evaluator).to.deep.include({ strategy: 'test_on_output', env: { E: 'f' } });
  });

  it('lists what its sandbox may reach', () => {
    const network = { egress: [{ host: 'Site.Test' }], prepare_egress: [{ host: '10.1.0.0/16', port: 80 }] };
    const { runtime } = parseTaskFile(JSON.stringify({ ...TASK, runtime: { network } }), 'task.json');
    expect(runtime?.network?.egress[0]).to.deep.include({ host: 'site.test', port: 443 });
    expect(runtime?.network?.prepareEgress[0]).to.deep.include({ host: '10.1.0.0/16', port: 80 });
    const none = parseTaskFile(JSON.stringify({ ...TASK, runtime: { network: 'none' } }), 'task.json');
    expect(none.runtime?.network?.egress).to.eql([]);
  });

  it('says what its sandbox may have, and where its command begins', () => {
    const runtime = { backend: 'docker', image: 'debian', gpus: 2, storage_mb: 64 };
    const agent = { ...TASK.agent, custom_shell: { command: 'make', cwd: '/work' } };
    const spec = parseTaskFile(JSON.stringify({ ...TASK, agent, runtime }), 'task.json');
    expect(spec.runtime).to.include({ backend: 'docker', gpus: 2, storageMb: 64 });
    expect(spec.harness?.command).to.include({ command: 'make', cwd: '/work' });
  });

  it('may be JSON, and needs three keys only', () => {
    const spec = parseTaskFile(JSON.stringify(TASK), 'task.json');
    expect(spec).to.include({ taskId: 'sum-1', numSamples: 1, maxAttempts: 3 });
    expect(spec.runtime).to.equal(undefined);
    expect(spec.evaluator).to.equal(undefined);
    expect(spec.builder?.strategy).to.equal('per_request');
  });

  it('sets the limits of each stage, and sampling', () => {
    const waits = { queue_seconds: 4, ready_seconds: 5 };
    const budgets = { prepare_seconds: 1.5, build_seconds: 2, evaluate_seconds: 3, ...waits };
    const sampling = { temperature: 0.5, top_p: 0.9, top_k: -1, max_tokens: 10, seed_base: 0 };
    const spec = parseTaskFile(stringify({ ...TASK, budgets, sampling }), 'task.yaml');
    const ms = (clock: keyof typeof CLOCKS): number => durationMs(spec.budgets![clock]!);
    const CLOCKS = { prepare: 1500, build: 2000, evaluate: 3000, queue: 4000, ready: 5000 };
    for (const [clock, limit] of Object.entries(CLOCKS)) {
      expect(ms(clock as keyof typeof CLOCKS), clock).to.equal(limit);
    }
    expect(spec.sampling).to.include({ temperature: 0.5, topP: 0.9, topK: -1, maxTokens: 10, seedBase: 0 });
  });
});

describe('scheduling in a task file', () => {
  it('sets queue, caps, early stop and callback', () => {
    const spec = parseTaskFile(
      stringify({
        ...TASK,
        num_samples: 8,
        ...{ queue: 'nightly', max_running_sessions: 2, callback_url: 'https://trainer.example/hook' },
        ...{ early_stop_min_usable_sessions: 6, early_stop_grace_seconds: 1.5 },
        early_stop_stragglers: 'carry_over',
      }),
      'task.yaml',
    );
    expect(spec).to.include({ queue: 'nightly', maxRunningSessions: 2 });
    expect(spec.callbackUrl).to.equal('https://trainer.example/hook');
    expect(spec.earlyStop?.minUsableSessions).to.equal(6);
    expect(durationMs(spec.earlyStop!.grace!)).to.equal(1_500);
    expect(spec.earlyStop?.stragglers).to.equal(Stragglers.CARRY_OVER);
  });
});

describe('faults of a task file', () => {
  const without = (key: keyof typeof TASK): object =>
    Object.fromEntries(Object.entries(TASK).filter(([name]) => name !== key));
  const runtime = (more: object): object => ({ ...TASK, runtime: more });
  const agent = (more: object): object => ({ ...TASK, agent: { ...TASK.agent, ...more } });
  const codex = (more: object): object => ({ ...TASK, agent: { harness: 'codex', ...more } });
  const rubric = (config: object): object => ({
    ...TASK,
    evaluator: { strategy: 'rubric', config: { judge: 'a', ...config } },
  });
  const harbor = (config: object): object => ({ ...TASK, evaluator: { strategy: 'harbor', config } });
  const SERVER = { name: 'x', command: 'x' };
  const step = (more: object): object => runtime({ prepare: [{ command: 'true' }, more] });

  const WRONG: readonly (readonly [string, object])[] = [
    ['task_id', without('task_id')],
    ['task_id', { ...TASK, task_id: '-x' }],
    ['task_id', { ...TASK, task_id: 'a/b' }],
    ['instruction', without('instruction')],
    ['instruction', { ...TASK, instruction: '' }],
    ['instruction', { ...TASK, instruction: ' ' }],
    ['num_samples', { ...TASK, num_samples: 0 }],
    ['num_samples', { ...TASK, num_samples: 1.5 }],
    ['num_samples', { ...TASK, num_samples: 20_000 }],
    ['timeout_seconds', { ...TASK, timeout_seconds: 0 }],
    ['timeout_seconds', { ...TASK, timeout_seconds: '10' }],
    ['dispatch_priority', { ...TASK, dispatch_priority: 101 }],
    ['max_attempts', { ...TASK, max_attempts: 11 }],
    ['callback_url', { ...TASK, callback_url: 'file:///etc/passwd' }],
    ['callback_url', { ...TASK, callback_url: 'http://user:pass@host/' }],
    ['early_stop_min_usable_sessions', { ...TASK, early_stop_min_usable_sessions: 2 }],
    ['early_stop_grace_seconds', { ...TASK, early_stop_grace_seconds: -1 }],
    ['early_stop_stragglers', { ...TASK, early_stop_stragglers: 'drop' }],
    ['queue', { ...TASK, queue: 'a b' }],
    ['queue', { ...TASK, queue: 'a'.repeat(65) }],
    ['max_running_sessions', { ...TASK, max_running_sessions: -1 }],
    ['budgets.queue_seconds', { ...TASK, budgets: { queue_seconds: 0 } }],
    ['budgets.ready_seconds', { ...TASK, budgets: { ready_seconds: 90_000 } }],
    ['metadata', { ...TASK, metadata: 'x' }],
    ['metadata.a', { ...TASK, metadata: { a: Number.NaN } }],
    ['metadata.agent_timeout', { ...TASK, metadata: { agent_timeout: -1 } }],
    ['metadata.eval_sampling_seed_base', { ...TASK, metadata: { eval_sampling_seed_base: 0.5 } }],
    ['budgets.prepare_seconds', { ...TASK, budgets: { prepare_seconds: 0 } }],
    ['budgets.run_seconds', { ...TASK, budgets: { run_seconds: 5 } }],
    ['sampling.temperature', { ...TASK, sampling: { temperature: 3 } }],
    ['sampling.top_p', { ...TASK, sampling: { top_p: 0 } }],
    ['sampling.top_k', { ...TASK, sampling: { top_k: 0 } }],
    ['sampling.max_tokens', { ...TASK, sampling: { max_tokens: 0 } }],
    ['sampling.seed_base', { ...TASK, sampling: { seed_base: 2 ** 32 } }],
    ['agent', without('agent')],
    ['agent.harness', { ...TASK, agent: {} }],
    ['agent.import_path', { ...TASK, agent: { import_path: 'a:B' } }],
    ['agent.import_path', { ...TASK, agent: { import_path: '../a.ts' } }],
    ['agent.harness', { ...TASK, agent: { harness: 'pi', import_path: 'a.ts' } }],
    ['agent.mcp_servers[0].transport', agent({ mcp_servers: [SERVER] })],
    [
      'agent.mcp_servers[0].transport',
      codex({ mcp_servers: [{ name: 'x', transport: 'sse', url: 'http://x' }] }),
    ],
    ['agent.mcp_servers[0].command', codex({ mcp_servers: [{ ...SERVER, command: '' }] })],
    ['agent.mcp_servers[0].name', codex({ mcp_servers: [{ ...SERVER, name: 'a b' }] })],
    ['agent.mcp_servers[0].url', codex({ mcp_servers: [{ name: 'x', transport: 'streamable_http' }] })],
    ['agent.mcp_servers', codex({ mcp_servers: [SERVER, SERVER] })],
    ['agent.skills_path', codex({ skills_path: 'not-there' })],
    ['agent.skills_path', agent({ skills_path: 'docs/adr' })],
    ['agent.artifacts[0]', agent({ artifacts: ['../x'] })],
    ['agent.model_name', agent({ model_name: 3 })],
    ['agent.model_pools', agent({ model_pools: ['gpt'] })],
    ['agent.settings.nonsense', agent({ settings: { nonsense: 1 } })],
    ['agent.env.1A', agent({ env: { '1A': 'x' } })],
    ['agent.env.A', agent({ env: { A: 1 } })],
    ['agent.custom_shell', { ...TASK, agent: { harness: 'shell' } }],
    ['agent.custom_shell', agent({ harness: 'pi' })],
    ['agent.custom_shell.command', agent({ custom_shell: { command: '' } })],
    ['agent.custom_shell.cwd', agent({ custom_shell: { command: 'x', cwd: 'y' } })],
    ['agent.custom_shell.shell', agent({ custom_shell: { command: 'x', shell: 'bash' } })],
    ['builder.strategy', { ...TASK, builder: { strategy: 'nope' } }],
    ['builder.config.x', { ...TASK, builder: { strategy: 'per_request', config: { x: 1 } } }],
    ['evaluator.strategy', { ...TASK, evaluator: { strategy: 'nope' } }],
    ['evaluator.config.rubric_path', rubric({ rubric_path: 'not-there.md' })],
    ['evaluator.config.rubric_path', rubric({ rubric: 'x', rubric_path: 'package.json' })],
    ['evaluator.config.rubric', rubric({})],
    ['evaluator.config.tests_dir', harbor({})],
    ['evaluator.config.tests_dir', harbor({ tests_dir: 'not-there' })],
    ['evaluator.config.tests_dir', harbor({ tests_dir: 'docs/adr' })],
    [
      'evaluator.config.outcome.config.tests_dir',
      rubric({ rubric: 'x', outcome: { strategy: 'harbor', config: { tests_dir: 'not-there' } } }),
    ],
    ['evaluator.config.judge_timeout', rubric({ rubric: 'x', judge_timeout: 291 })],
    ['evaluator.refresh_runtime', { ...TASK, evaluator: { ...EVALUATOR, refresh_runtime: 'yes' } }],
    [
      'evaluator.config.expected_output_json',
      { ...TASK, evaluator: { strategy: 'test_on_output', config: { test_command: 'true' } } },
    ],
    ['runtime.backend', runtime({ backend: 'nerdctl' })],
    ['runtime.image', runtime({ image: '../x' })],
    ['runtime.image', runtime({ backend: 'process', image: 'x' })],
    ['runtime.workdir', runtime({ workdir: 'x' })],
    ['runtime.workdir', runtime({ workdir: '/x/../y' })],
    ['runtime.cpus', runtime({ cpus: -1 })],
    ['runtime.memory_mb', runtime({ memory_mb: 0.5 })],
    ['runtime.memory_mb', runtime({ memory_mb: 2 ** 32 })],
    ['runtime.network', runtime({ network: 'bridge' })],
    ['runtime.network', runtime({ backend: 'process', network: { egress: [{ host: 'site.test' }] } })],
    ['runtime.network.ingress', runtime({ network: { ingress: [] } })],
    ['runtime.network.egress[0]', runtime({ network: { egress: ['site.test'] } })],
    ['runtime.network.egress[0].host', runtime({ network: { egress: [{ host: 'https://site.test' }] } })],
    ['runtime.network.egress[0].host', runtime({ network: { egress: [{ host: '10.0.0.1/8' }] } })],
    [
      'runtime.network.prepare_egress[0].port',
      runtime({ network: { prepare_egress: [{ host: 'a', port: 0 }] } }),
    ],
    ['runtime.allow_internet', runtime({ allow_internet: true })],
    ['runtime.gpus', runtime({ gpus: -1 })],
    ['runtime.storage_mb', runtime({ backend: 'process', storage_mb: 1 })],
    ['runtime.import_path', runtime({ import_path: 'a:B' })],
    ['runtime.kwargs', runtime({ kwargs: { a: 1 } })],
    ['runtime.nonsense', runtime({ nonsense: 1 })],
    ['runtime.prepare', runtime({ prepare: 'make' })],
    ['runtime.prepare[1].type', step({ type: 'copy' })],
    ['runtime.prepare[1].command', step({ command: 3 })],
    ['runtime.prepare[1].command', step({ command: ' ' })],
    ['runtime.prepare[1].cwd', step({ command: 'x', cwd: '/a/../b' })],
    ['runtime.prepare[1].max_attempts', step({ command: 'x', max_attempts: 11 })],
    ['runtime.prepare[1].source', step({ type: 'exec', command: 'x', source: 'y' })],
    ['runtime.prepare[1].target', step({ type: 'upload_file', source: 'package.json', target: 'x' })],
    ['runtime.prepare[1].target', step({ type: 'upload_file', source: 'package.json', target: '/x/../y' })],
    ['runtime.prepare[1].source', step({ type: 'upload_file', source: 'not-there', target: '/x' })],
    ['runtime.prepare[1].source', step({ type: 'upload_file', source: 'services', target: '/x' })],
    ['runtime.prepare[1].source', step({ type: 'upload_dir', source: 'package.json', target: '/x' })],
    [
      'runtime.eval_prepare[0].source',
      runtime({ eval_prepare: [{ type: 'upload_dir', source: 'no', target: '/x' }] }),
    ],
    ['runtime.eval_prepare[0].command', runtime({ eval_prepare: [{ command: ' ' }] })],
    ['nonsense', { ...TASK, nonsense: 1 }],
  ];
  for (const [field, task] of WRONG) {
    it(`${field}: ${changed(task)}`, () => {
      expect(fieldsIn(task)).to.deep.equal([field]);
    });
  }

  it('has a case for every key', () => {
    const tried = new Set(WRONG.map(([field]) => field.replace(/[.[].*/, '')));
    expect([...tried]).to.include.members(Object.keys(taskFileSchema.shape));
  });

  it('come all at once, those of parts that are whole beside those that are not', () => {
    const faults = fieldsIn({
      num_samples: 0,
      instruction: 'Add.',
      agent: { harness: 'nope', skills_path: 'x' },
      runtime: {
        backend: 'process',
        storage_mb: 1,
        prepare: [{ type: 'upload_file', source: 'not-there', target: '/x' }],
      },
      evaluator: { strategy: 'nope' },
      extra: true,
    });
    expect(faults).to.have.members([
      'task_id',
      'num_samples',
      'extra',
      'agent.harness',
      'agent.skills_path',
      'runtime.storage_mb',
      'runtime.prepare[0].source',
      'evaluator.strategy',
    ]);
  });

  it('say which names there are', () => {
    expect(faultsIn(stringify(agent({ harness: 'vim' }))).join()).to.contain('there are shell, pi');
  });

  it('name the line where the text is not YAML', () => {
    expect(faultsIn('task_id: a\n  b: [')[0]).to.match(/^line \d+, column \d+: /);
    expect(faultsIn('- a')[0]).to.match(/^\(document\)/);
    expect(faultsIn('')[0]).to.match(/^\(document\)/);
  });

  it('name a file that is not there', () => {
    expect(() => readTaskFile('not-there.yaml')).to.throw(PolarError, /not-there\.yaml/);
  });
});

describe('uploads of a task file', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-task-'));
    mkdirSync(join(folder, 'tree/deep'), { recursive: true });
    writeFileSync(join(folder, 'tree/run.sh'), 'echo', { mode: 0o755 });
    chmodSync(join(folder, 'tree/run.sh'), 0o755);
    writeFileSync(join(folder, 'tree/deep/data'), Buffer.from([0, 255]), { mode: 0o644 });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const task = (source: string, type = 'upload_dir'): string =>
    stringify({ ...TASK, runtime: { prepare: [{ type, source, target: '/in' }] } });

  it('are relative to the file, with their modes', () => {
    writeFileSync(join(folder, 'task.yaml'), task('tree'));
    const step = readTaskFile(join(folder, 'task.yaml')).runtime?.prepare[0]?.step;
    if (step?.case !== 'uploadDir') throw new Error('no folder');
    expect(step.value.target).to.equal('/in');
    expect(step.value.files.map(({ target, mode, content }) => [target, mode, [...content]])).to.deep.equal([
      ['deep/data', 0o644, [0, 255]],
      ['run.sh', 0o755, [...Buffer.from('echo')]],
    ]);
  });

  it('do not follow links', () => {
    symlinkSync('/etc/passwd', join(folder, 'tree/link'));
    expect(faultsIn(task('tree'), join(folder, 'task.yaml'))[0]).to.match(
      /prepare\[0\]\.source: .*tree\/link/,
    );
  });

  it('end at TASK_SPEC_BYTES_MAX, before they are read', () => {
    for (const name of ['a', 'b']) writeFileSync(join(folder, 'tree', name), Buffer.alloc(9 * 1024 * 1024));
    const [fault] = faultsIn(task('tree'), join(folder, 'task.yaml'));
    expect(fault).to.match(/^runtime\.prepare\[0\]\.source: .* above 16777216 bytes/);
  });
});
