import { expect } from 'chai';
import { Places } from './places.ts';

const never = new AbortController().signal;

/** A task that begins when it is let, and ends when it is told. */
function held() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const one = { begun: false, end: resolve, task: async () => {} };
  one.task = async () => {
    one.begun = true;
    await promise;
  };
  return one;
}

const settled = async (): Promise<void> => void (await new Promise(setImmediate));

describe('places for evaluations', () => {
  it('are given to what is graded again as far as sessions that end leave them', async () => {
    const places = new Places(2);
    const [live, first, second] = [held(), held(), held()];
    const all = [places.live(live.task)];
    await settled();
    all.push(places.again(first.task, never), places.again(second.task, never));
    await settled();
    expect([live.begun, first.begun, second.begun]).to.deep.equal([true, true, false]);
    live.end();
    await settled();
    expect(second.begun).to.equal(true);
    first.end();
    second.end();
    await Promise.all(all);
  });

  it('are there for sessions that end, whatever is graded again', async () => {
    const places = new Places(1);
    const [again, waiting, live, behind] = [held(), held(), held(), held()];
    const all = [places.again(again.task, never), places.again(waiting.task, never)];
    all.push(places.live(live.task), places.live(behind.task));
    await settled();
    expect([again.begun, live.begun, behind.begun]).to.deep.equal([true, true, false]);
    again.end();
    await settled();
    expect(waiting.begun, 'while the live one has the place').to.equal(false);
    live.end();
    await settled();
    behind.end();
    await settled();
    expect(waiting.begun).to.equal(true);
    waiting.end();
    await Promise.all(all);
  });

  it('are not waited for by who leaves, nor by more than the limit', async () => {
    const places = new Places(1, 1);
    const first = held();
    const running = places.again(first.task, never);
    const leaving = new AbortController();
    const left = places.again(async () => 'ran', leaving.signal).catch((error: unknown) => error);
    const refused = await places.again(async () => 'ran', never).catch((error: unknown) => error);
    expect(refused).to.include({ reason: 'EVALUATIONS_LIMIT', retryable: true });
    leaving.abort(new Error('gone'));
    expect(await left).to.include({ message: 'gone' });
    const last = places.again(async () => 'ran', never);
    first.end();
    await running;
    expect(await last).to.equal('ran');
  });

  it('are given back by what fails', async () => {
    const places = new Places(1);
    const fails = async (): Promise<never> => {
      throw new Error('failed');
    };
    for (const run of [() => places.live(fails), () => places.again(fails, never)]) {
      expect(await run().catch((error: Error) => error.message)).to.equal('failed');
    }
    expect(await places.again(async () => 'ran', never)).to.equal('ran');
  });
});
