import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { PauseMode, type Policy, PolicySchema } from '../../../gen/ts/polar/event/v1/policy_pb.js';
import { sleep } from '../../common/clock.ts';
import { TimeLimit } from '../attempts/time-limit.ts';
import { pausing, resumed } from '../domain/policy.ts';
import { Gate, type Holdable } from './gate.ts';

const [LIMIT_MS, PAUSE_MS] = [20, 60];
const SERVING = create(PolicySchema, {});
const pausedIn = (mode: PauseMode): Policy =>
  pausing(SERVING, { id: 'p', mode, nowMs: Date.now(), ttlMs: 60_000 });

/** A call that may take LIMIT_MS in all. */
class LimitedCall implements Holdable, Disposable {
  readonly #controller = new AbortController();
  readonly #limit = new TimeLimit({ totalMs: LIMIT_MS, silenceMs: LIMIT_MS }, () =>
    this.giveUp(new Error('late')),
  );
  readonly signal = this.#controller.signal;

  constructor() {
    this.#limit.start();
  }

  giveUp(why: Error): void {
    this.#controller.abort(why);
  }

  hold(): Disposable {
    return this.#limit.hold();
  }

  [Symbol.dispose](): void {
    this.#limit[Symbol.dispose]();
  }
}

describe('the gate', () => {
  const gate = new Gate(() => {});
  let revision = 0;
  const apply = (policy: Policy): void => gate.apply({ policy, revision: ++revision });
  const resume = (policy: Policy): void => apply(resumed(policy, 'p', PAUSE_MS) as Policy);

  it('does not count what a call waits for the end of a pause', async () => {
    using call = new LimitedCall();
    const pause = pausedIn(PauseMode.DRAIN);
    apply(pause);
    const entered = gate.enter(call);
    await sleep(PAUSE_MS);
    resume(pause);
    using passage = await entered;
    expect(passage.signal.aborted).to.equal(false);
    await sleep(LIMIT_MS * 2);
    expect(passage.signal.reason).to.have.property('message', 'late');
  });

  it('does not count what an engine keeps of a call across a pause, and nothing else of one', async () => {
    using call = new LimitedCall();
    using passage = await gate.enter(call);
    const pause = pausedIn(PauseMode.KEEP);
    apply(pause);
    await sleep(PAUSE_MS);
    expect(passage.signal.aborted).to.equal(false);
    resume(pause);
    await sleep(LIMIT_MS * 2);
    expect(passage.signal.aborted).to.equal(true);
    using other = new LimitedCall();
    using draining = await gate.enter(other);
    const drain = pausedIn(PauseMode.DRAIN);
    apply(drain);
    await sleep(LIMIT_MS * 2);
    expect(draining.signal.aborted).to.equal(true);
    resume(drain);
  });
});
