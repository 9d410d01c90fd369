// Evaluations on a node of a test: what an agent did in a small repository, and what the evaluator says of it.
import { create, type JsonObject } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { type StoredChanges, StoredChangesSchema } from '../../gen/ts/polar/event/v1/graded_pb.js';
import { type Evaluated, EvaluateWorkSchema, type Failed } from '../../gen/ts/polar/event/v1/work_pb.js';
import { execCollected } from '../../services/common/exec.ts';
import { fromStored } from '../../services/common/stored.ts';
import { newRef, type RuntimeInit, startNode, type TestNode } from './node.ts';
import { Mesh } from './reconstructor.ts';

export const REPO = '/polar/session/repo';
export const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });
export const COMMIT = 'git -c user.name=x -c user.email=x@example.org commit -qm';
export const PREPARE = [
  exec(`mkdir ${REPO} && cd ${REPO} && git init -q && printf 'a = 0\\n' > a.py && printf 'x\\n' > keep.txt`),
  exec(`cd ${REPO} && git add -A && ${COMMIT} start`),
];
/** Passes where a.py says 1, and where new.txt is there. */
export const TEST = [
  'grep -q "a = 1" a.py && echo "PASSED t.py::test_a" || echo "FAILED t.py::test_a - it is not"',
  'test -e new.txt && echo "PASSED t.py::T::test_new" || echo "FAILED t.py::T::test_new"',
].join('; ');
export const SOLVE = "printf 'a = 1\\n' > a.py; echo new > new.txt";
export const CONFIG = {
  repo_dir: REPO,
  test_command: TEST,
  expected_output_json: { test_a: 'PASSED', 'T.test_new': 'PASSED' },
};

export interface Case {
  /** What the agent does. */
  readonly agent?: string;
  readonly config?: object;
  readonly runtime?: RuntimeInit;
  readonly strategy?: string;
  readonly outcome?: Outcome;
  readonly timeoutMs?: number;
  readonly env?: Record<string, string>;
  /** Of the evaluator, by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly metadata?: JsonObject;
  /** Recorded calls of the attempt. */
  readonly calls?: readonly Completion[];
}

export class Evaluations implements AsyncDisposable {
  readonly node: TestNode;
  readonly #mesh: Mesh;

  private constructor(node: TestNode, mesh: Mesh) {
    this.node = node;
    this.#mesh = mesh;
  }

  /** `more`: keys of the node in the topology. */
  static async open(more: object = {}): Promise<Evaluations> {
    const node = await startNode(['runtime-prewarm', 'evaluator'], more);
    return new Evaluations(node, await Mesh.open(node.nats.url));
  }

  async evaluated(given: Case): Promise<Evaluated> {
    const kind = await this.#kindOf(given);
    if (kind.case === 'evaluated') return kind.value;
    throw new Error(`not evaluated: ${kind.case === 'failed' ? kind.value.failure?.message : kind.case}`);
  }

  async failed(given: Case): Promise<Failed> {
    const kind = await this.#kindOf(given);
    if (kind.case === 'failed') return kind.value;
    throw new Error(`not failed: ${kind.case}`);
  }

  async #kindOf(given: Case) {
    const { node } = this;
    const ref = newRef();
    const calls = given.calls && (await this.#mesh.record(ref.sessionId, ref.attempt, given.calls));
    const runtime = { backend: node.backend, prepare: PREPARE, ...given.runtime };
    const runtimeId = await node.acquire(ref, runtime);
    if (given.agent !== undefined) {
      const argv = ['sh', '-ec', `cd ${REPO}; ${given.agent}`];
      const command = { runtimeId, argv, timeoutMs: 20_000 };
      const { result, stderr } = await execCollected(node.runtimes, command, AbortSignal.timeout(30_000));
      expect(result.exitCode, Buffer.from(stderr).toString()).to.equal(0);
    }
    const value = create(EvaluateWorkSchema, {
      runtimeId,
      runtime,
      outcome: given.outcome ?? Outcome.COMPLETED,
      ...(calls && { calls }),
      metadata: given.metadata ?? {},
      timeoutMs: BigInt(given.timeoutMs ?? 60_000),
      evaluator: {
        strategy: given.strategy ?? 'test_on_output',
        config: (given.strategy === undefined ? { ...CONFIG, ...given.config } : given.config) as never,
        env: given.env ?? {},
        files: Object.entries(given.files ?? {}).map(([target, text]) => ({
          ...{ target, content: Buffer.from(text) },
        })),
      },
    });
    await node.work(ref, { case: 'evaluate', value });
    return (await node.fact(ref)).kind;
  }

  /** What was read of the session's changes, as it is kept. */
  async changes({ changes }: Evaluated | Failed): Promise<StoredChanges> {
    if (changes === undefined) throw new Error('no changes are kept');
    return fromStored(StoredChangesSchema, await this.#mesh.blobs.get(changes));
  }

  /** Evaluations leave no sandbox. */
  async checkClear(): Promise<void> {
    const { runtimes } = await this.node.runtimes.listRuntimes({});
    expect(runtimes.filter(({ owner }) => owner?.purpose === 'evaluate')).to.deep.equal([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#mesh.close();
    await this.node[Symbol.asyncDispose]();
  }
}
