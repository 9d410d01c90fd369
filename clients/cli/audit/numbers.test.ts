import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { SessionSchema } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { Differences } from './differences.ts';
import { harnessRows, spanMs } from './harnesses.ts';

describe('numbers of an audit', () => {
  it('are the distribution of absolute differences, with the place of the largest', () => {
    const differences = new Differences();
    expect(differences.distribution()).to.equal(undefined);
    for (let i = 1; i <= 100; i++) {
      const recorded = -1;
      differences.add('s', {
        callId: `c${i}`,
        trace: 0,
        index: i,
        recorded,
        again: recorded + (-1) ** i * i,
      });
    }
    const found = differences.distribution();
    expect(found).to.include({ ids: 100, mean: 50.5, p50: 50, p90: 90, p99: 99, max: 100 });
    expect(found?.worst).to.include({ sessionId: 's', callId: 'c100', index: 100 });
  });

  it('have no bound where the engine cannot score an id', () => {
    const differences = new Differences();
    differences.add('s', { callId: 'c', trace: 0, index: 0, recorded: -1, again: Number.NaN });
    expect(differences.distribution()?.max).to.equal(Number.POSITIVE_INFINITY);
  });

  it('are the delivered part of each harness', () => {
    const session = (harness: string, trained: bigint, maskedTokens: Record<string, bigint>) => {
      const masked = Object.values(maskedTokens).reduce((sum, count) => sum + count, 0n);
      const stats = { trainedTokens: trained, sampledTokens: trained + masked, maskedTokens, calls: 1 };
      return create(SessionSchema, { harness, stats });
    };
    const rows = harnessRows([
      session('pi', 60n, { side: 20n }),
      session('aider', 5n, {}),
      session('pi', 0n, { side: 10n, cancelled: 10n }),
      create(SessionSchema, { harness: 'pi' }),
      create(SessionSchema, { harness: 'codex' }),
    ]);
    expect(rows.map(({ harness, delivered }) => [harness, delivered])).to.deep.equal([
      ['aider', 1],
      ['codex', null],
      ['pi', 0.6],
    ]);
    expect(rows[2]).to.deep.include({
      sessions: 3,
      without_trajectory: 1,
      masked: { cancelled: 10, side: 30 },
    });
  });

  it('are spans of time', () => {
    expect(['90m', '24h', '7d'].map(spanMs)).to.deep.equal([5_400_000, 86_400_000, 604_800_000]);
    expect(['', '24', 'h', '1.5h', '24 h'].map(spanMs)).to.deep.equal(new Array(5).fill(undefined));
  });
});
