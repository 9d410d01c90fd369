import { expect } from 'chai';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { failure } from '../../common/errors.ts';
import { infrastructureCause, readExit } from './exit.ts';

const facts = { exitCode: 0, timedOut: false, outOfMemory: false, proxyConnectFailures: 0, proxyAway: false };

describe('the end of a harness', () => {
  it('is COMPLETED with exit code 0 only', () => {
    expect(readExit(facts)).to.deep.equal({ outcome: Outcome.COMPLETED });
  });

  it('is HARNESS_ERROR with any other exit code', () => {
    for (const exitCode of [1, 2, 127, 137]) {
      const exit = readExit({ ...facts, exitCode });
      expect(exit.outcome).to.equal(Outcome.HARNESS_ERROR);
      expect(exit.failure).to.include({ reason: 'HARNESS_EXIT', infrastructure: false });
      expect(exit.failure?.message).to.contain(`exit code ${exitCode}`);
    }
    const exit = readExit({ ...facts, exitCode: 137, outOfMemory: true });
    expect(exit.failure?.message).to.contain('memory limit');
  });

  it('is TIMEOUT when the limit ended it, whatever code that left', () => {
    for (const exitCode of [0, 137]) {
      const exit = readExit({ ...facts, exitCode, timedOut: true });
      expect(exit.outcome).to.equal(Outcome.TIMEOUT);
      expect(exit.failure).to.include({ reason: 'HARNESS_TIMEOUT', infrastructure: false });
    }
  });
});

describe('the cause of a failed harness', () => {
  const engineDown = failure('ENGINE_UNAVAILABLE', 'down');
  const cause = (change: Partial<typeof facts>, last?: typeof engineDown): string | undefined => {
    const all = { ...facts, ...change };
    return infrastructureCause(readExit(all), all, last)?.reason;
  };

  it('is the last model call, however the harness ended', () => {
    expect(cause({}, engineDown)).to.equal('ENGINE_UNAVAILABLE');
    expect(cause({ exitCode: 1 }, engineDown)).to.equal('ENGINE_UNAVAILABLE');
    expect(cause({ timedOut: true }, engineDown)).to.equal('ENGINE_UNAVAILABLE');
  });

  it('is the proxy that was away at the last try, however the harness ended', () => {
    const failed = { proxyAway: true, proxyConnectFailures: 1 };
    for (const end of [{}, { exitCode: 1 }, { timedOut: true }]) {
      expect(cause({ ...failed, ...end })).to.equal('PROXY_UNAVAILABLE');
    }
    // It was away for less than a connection may take: none was given up.
    expect(cause({ proxyAway: true })).to.equal('PROXY_UNAVAILABLE');
    expect(cause(failed, engineDown)).to.equal('ENGINE_UNAVAILABLE');
  });

  it('is the proxy that was not reached once, after an error exit', () => {
    expect(cause({ exitCode: 1, proxyConnectFailures: 2 })).to.equal('PROXY_UNAVAILABLE');
    expect(cause({ timedOut: true, proxyConnectFailures: 2 })).to.equal(undefined);
  });

  it('is nothing where the harness completed, or failed by itself', () => {
    expect(cause({ proxyConnectFailures: 1 })).to.equal(undefined);
    expect(cause({ exitCode: 1 })).to.equal(undefined);
    expect(cause({ exitCode: 1 }, failure('ENGINE_REFUSED', 'too long'))).to.equal(undefined);
  });
});
