// polar up: a whole mesh on this machine.
import { join } from 'node:path';
import process from 'node:process';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { ENGINE_KINDS } from '../../../services/common/config/topology.ts';
import { EXIT } from '../../../services/common/exit-codes.ts';
import { readTaskFile } from '../../../services/common/specs/task-file.ts';
import { type Arguments, type Command, textFlag, textFlags, UsageError } from '../arguments.ts';
import { environment } from '../config.ts';
import { engineProblems } from '../engine-problems.ts';
import { runExample } from '../example.ts';
import { type LocalMesh, startLocalMesh } from '../mesh/local-mesh.ts';
import { addressIn } from '../mesh-clients.ts';
import { complain, progress, say, sayJson } from '../output/say.ts';
import { ROOT } from '../services.ts';
import { STOPS } from '../stops.ts';

const EXAMPLE = join(ROOT, 'examples/calculator/task.yaml');

export const up: Command = {
  name: 'up',
  summary: 'run a whole mesh on this machine until Ctrl-C',
  operands: [],
  flags: {
    example: { type: 'boolean', help: 'run the calculator example when the mesh is ready' },
    task: { type: 'string', value: 'FILE', help: 'run this task file when the mesh is ready' },
    once: {
      type: 'boolean',
      help: 'stop after it; exit 1 if a session has no trajectory and was not stopped early',
    },
    'data-dir': { type: 'string', value: 'DIR', help: "state of the mesh; default the topology's, .polar" },
    engine: {
      type: 'string',
      value: 'KIND',
      help: "of every node: sglang, vllm, llamacpp or openai; default the topology's",
    },
    'engine-url': {
      type: 'string',
      value: 'URL',
      help: 'inference server of every node; for a node without one, a scripted engine is started',
    },
    script: {
      type: 'string',
      multiple: true,
      value: 'FILE',
      help: 'what the scripted engine plays; may be given often',
    },
  },
  examples: [
    'polar up',
    'polar up --example --once',
    'polar up --task task.yaml --script script.yaml',
    'polar up -c topology.yaml --engine vllm --engine-url http://127.0.0.1:8000',
  ],
  async run(args) {
    const file = textFlag(args, 'task') ?? (args.flags['example'] === true ? EXAMPLE : undefined);
    const once = args.flags['once'] === true;
    if (once && file === undefined) throw new UsageError('--once needs --example or --task');
    const task = file === undefined ? undefined : readTaskFile(file);
    const stop = new AbortController();
    const asked = new Promise<'asked'>((resolve) => {
      for (const signal of STOPS) {
        process.on(signal, () => {
          stop.abort();
          resolve('asked');
        });
      }
    });
    return await runUp(args, task, once, stop.signal, asked);
  },
};

async function runUp(
  args: Arguments,
  task: TaskSpec | undefined,
  once: boolean,
  signal: AbortSignal,
  asked: Promise<'asked'>,
): Promise<number> {
  const started = performance.now();
  const json = args.flags['json'] === true;
  // What is on its way when the mesh is to end has not failed.
  const ended = (error: unknown): undefined => {
    if (!signal.aborted) throw error;
  };
  const mesh = await startLocalMesh(
    {
      config: textFlag(args, 'config') ?? environment.topology,
      dataDir: textFlag(args, 'data-dir'),
      engine: engineKind(args),
      engineUrl: addressIn(args, 'engine-url'),
      scripts: textFlags(args, 'script'),
    },
    signal,
  ).catch(ended);
  if (mesh === undefined) return EXIT.ok;
  try {
    announce(mesh, performance.now() - started, json);
    for (const problem of await engineProblems(mesh.local.topology, signal)) complain(`WARNING: ${problem}`);
    const code = task && (await runExample(mesh, task, { json, signal }).catch(ended));
    if (once) return code ?? EXIT.ok;
    if (!json && !signal.aborted) progress('The mesh is up. Ctrl-C ends it.');
    await Promise.race([asked, mesh.supervisor.failed]);
    return EXIT.ok;
  } finally {
    await mesh.stop();
  }
}

function engineKind(args: Arguments): string | undefined {
  const kind = textFlag(args, 'engine');
  if (kind === undefined || ENGINE_KINDS.some((one) => one === kind)) return kind;
  throw new UsageError(`--engine must be one of ${ENGINE_KINDS.join(', ')}, not ${kind}`);
}

/** As it can be pasted: folders may have spaces. */
const inShell = (path: string): string =>
  /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;

function announce(mesh: LocalMesh, readyMs: number, json: boolean): void {
  const { addresses, supervisor, local, logs } = mesh;
  for (const note of local.moved) complain(note);
  if (json) {
    sayJson({
      ready: true,
      ready_ms: Math.round(readyMs),
      addresses,
      pids: supervisor.pids,
      topology: local.file,
    });
    return;
  }
  say(`mesh ready in ${(readyMs / 1000).toFixed(2)} s`);
  const width = Math.max(...Object.keys(addresses).map((name) => name.length));
  for (const [name, address] of Object.entries(addresses)) say(`  ${name.padEnd(width)}  ${address}`);
  say(`  ${'logs'.padEnd(width)}  ${logs}`);
  say(`  ${'topology'.padEnd(width)}  ${local.file}`);
  say(`  ${'look at it'.padEnd(width)}  polar dashboard -c ${inShell(local.file)}`);
  if (local.embedded.length > 0) {
    say(
      'The engine is scripted: real tokenizer, chat template, ids and logprobs, replies from a script, no GPU.',
    );
    say('For a real one: polar up --engine sglang|vllm --engine-url http://HOST:PORT');
  }
}
