import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { ExecResultSchema } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { PolarError, type Reason } from '../../common/errors.ts';
import { harborReward } from '../domain/harbor-reward.ts';
import type { OpenSandbox } from '../sandboxes/sandbox.ts';
import { type Verification, verify } from './verify.ts';

interface Told {
  /** Commands: clearing, then the verifier. */
  readonly timedOut?: readonly [boolean, boolean];
  /** Before and after the verifier. */
  readonly rewards?: readonly [string | undefined, string | undefined];
  readonly put?: Reason;
  readonly isolates?: boolean;
}

/** A sandbox of which each answer is known. */
function sandboxOf({ timedOut = [false, false], rewards = [undefined, '1'], put, isolates = true }: Told) {
  const commands: (readonly string[])[] = [];
  const limits: number[] = [];
  const files: { target: string; mode?: number }[] = [];
  const sandbox: OpenSandbox = {
    workdir: '/app',
    isolates: async () => isolates,
    async exec(argv, timeoutMs) {
      commands.push(argv);
      limits.push(timeoutMs);
      const result = create(ExecResultSchema, { timedOut: timedOut[commands.length - 1] ?? false });
      return { stdout: Buffer.from('out'), stderr: Buffer.from('err'), result };
    },
    putFile: () => Promise.reject(new Error('not asked')),
    async putFiles(given) {
      if (put !== undefined) throw new PolarError(put, 'ENOSPC');
      files.push(...given);
    },
    async readFile(path) {
      const text = rewards[commands.length - 1];
      return path.endsWith('.txt') && text !== undefined ? Buffer.from(text) : undefined;
    },
  };
  return { sandbox, commands, limits, files };
}

const job = (over: Partial<Verification> = {}): Verification => ({
  clears: ['/tests', '/logs/verifier'],
  files: [{ target: '/tests/a', content: new Uint8Array() }],
  command: 'check',
  ...{ timeoutSeconds: 120, timeoutKey: 'verifier_timeout' },
  written: ['/logs/verifier/reward.txt'],
  rewardOf: ([text]) => harborReward(undefined, text),
  isCapped: false,
  remainingMs: () => 1e6,
  ...over,
});
const refusal = async (work: Promise<unknown>): Promise<string> =>
  await work.then(
    () => expect.fail('it was taken'),
    (error: PolarError) => error.reason,
  );

describe('a verifier', () => {
  it('finds its places cleared and its files there, and starts in the workdir', async () => {
    const { sandbox, commands, limits, files } = sandboxOf({});
    const { reward, told } = await verify(job(), sandbox);
    expect([reward, told['verifier_output_tail']]).to.deep.equal([1, 'err\nout']);
    expect(commands[0]?.slice(-5)).to.deep.equal(['sh', '/logs', '--', '/tests', '/logs/verifier']);
    expect(commands[1]?.slice(-2)).to.deep.equal(['/app', 'check']);
    expect(limits).to.deep.equal([30_000, 120_000]);
    expect(files.map(({ target }) => target)).to.deep.equal(['/tests/a']);
  });

  it('says nothing where what an agent has left stays, and is not asked', async () => {
    const { sandbox, commands } = sandboxOf({ rewards: ['1', '1'] });
    const { reward, fault } = await verify(job(), sandbox);
    expect([reward, fault, commands.length]).to.deep.equal([
      undefined,
      'could not clear /tests and /logs/verifier',
      1,
    ]);
    const slow = await verify(job(), sandboxOf({ timedOut: [true, false] }).sandbox);
    expect([slow.reward, slow.fault]).to.deep.equal([
      undefined,
      'could not clear /tests and /logs/verifier in 30 s',
    ]);
  });

  it('says nothing where it does not end, whatever it has written', async () => {
    const { sandbox } = sandboxOf({ timedOut: [false, true] });
    expect(await verify(job(), sandbox)).to.include({ reward: undefined, isLate: true });
  });

  it('that the budget cuts, and not its own limit, is a failure', async () => {
    for (const timedOut of [
      [true, false],
      [false, true],
    ] as const) {
      const work = verify(job({ remainingMs: () => 20_000 }), sandboxOf({ timedOut }).sandbox);
      expect(await refusal(work)).to.equal('EVALUATION_TIMEOUT');
    }
  });

  it('never clears what is not the own of its sandbox', async () => {
    const { sandbox, commands } = sandboxOf({ isolates: false });
    expect(await refusal(verify(job(), sandbox))).to.equal('INVALID_TASK');
    expect(commands).to.deep.equal([]);
    const own = sandboxOf({ isolates: false });
    const clears = ['/polar/session/tests', '/polar/session/logs/verifier'];
    expect((await verify(job({ clears }), own.sandbox)).reward).to.equal(1);
    expect(own.commands[0]?.slice(4)).to.deep.equal(['/polar/session/logs', '--', ...clears]);
  });

  it('that has no room is told apart from a broken sandbox by the disk that is its own', async () => {
    const full = () => sandboxOf({ put: 'SANDBOX_FAILED' }).sandbox;
    expect(await refusal(verify(job(), full()))).to.equal('SANDBOX_FAILED');
    expect(await verify(job({ isCapped: true }), full())).to.include({
      reward: undefined,
      isLate: false,
    });
    const lost = sandboxOf({ put: 'RUNTIME_LOST' }).sandbox;
    expect(await refusal(verify(job({ isCapped: true }), lost))).to.equal('RUNTIME_LOST');
    const path = sandboxOf({ put: 'UNSAFE_PATH' }).sandbox;
    expect((await verify(job(), path)).fault).to.equal('found no place: ENOSPC');
  });
});
