import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { SessionRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { WATCH_QUEUE_MAX } from '../../common/limits.ts';
import { Watcher } from './watchers.ts';

const session = create(SessionRecordSchema, { session: { sessionId: 's-1-0' } });
const { signal } = new AbortController();

describe('watcher', () => {
  it('gives what came since the last call, at once', async () => {
    const watcher = new Watcher();
    watcher.push(session);
    watcher.push(session);
    expect(await watcher.next(60_000, signal)).to.have.length(2);
    expect(await watcher.next(1, signal)).to.have.length(0);
  });

  it('wakes when something comes, and when the caller leaves', async () => {
    const watcher = new Watcher();
    const waiting = watcher.next(60_000, signal);
    watcher.push(session);
    expect(await waiting).to.have.length(1);
    const leaving = new AbortController();
    const left = watcher.next(60_000, leaving.signal);
    leaving.abort();
    expect(await left).to.have.length(0);
  });

  it('ends with a typed error when too much is waiting', async () => {
    const watcher = new Watcher();
    for (let i = 0; i <= WATCH_QUEUE_MAX; i++) watcher.push(session);
    const error = await watcher.next(0, signal).catch((reason) => reason);
    expect(error.reason).to.equal('WATCH_OVERFLOW');
  });
});
