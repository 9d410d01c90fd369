// Every field of a task wrong in turn, as a client sends it.
import { expect } from 'chai';
import { asPolarError } from '../../services/common/errors.ts';
import { completeTaskSpec } from '../../services/common/specs/task-spec.ts';
import type { Change } from '../support/faulty-evaluators.ts';
import { good, WRONG } from '../support/faulty-specs.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { startScheduler, type TestScheduler } from '../support/scheduler.ts';

const TOPOLOGY = { evaluators: { judges: { a: { base_url: 'http://127.0.0.1:9', model: 'm' } } } };
const unknownJudge: Change = (spec) => {
  if (spec.evaluator === undefined) return;
  Object.assign(spec.evaluator, { strategy: 'rubric', config: { judge: 'http://10.0.0.1', rubric: 'b' } });
};
/** Beside what is wrong anywhere, what is wrong with this topology. */
const ALL_WRONG = [
  ...WRONG,
  ['evaluator.config.judge', unknownJudge, /no judge http:\/\/10.0.0.1; there are a$/] as const,
];

describe('faulty tasks at submit', () => {
  let nats: TestNats;
  let scheduler: TestScheduler;
  before(async () => {
    nats = await startNats();
    scheduler = await startScheduler(nats.url, {}, TOPOLOGY);
    await scheduler.leading;
  });
  after(async () => {
    await scheduler[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  it('are refused by their field, each alone, and nothing is kept of them', async () => {
    for (const [field, change, description = /./] of ALL_WRONG) {
      const spec = completeTaskSpec(good());
      change(spec);
      const answer = scheduler.client.submitTask({ spec });
      const error = await answer.then(() => expect.fail(`taken with a wrong ${field}`), asPolarError);
      expect(error.reason, `${field}: ${error.message}`).to.equal('INVALID_TASK');
      expect(error.fields.map((fault) => fault.field)).to.deep.equal([field]);
      expect(error.fields[0]?.description).to.match(description);
    }
    expect((await scheduler.client.listTasks({})).tasks).to.deep.equal([]);
    await scheduler.client.submitTask({ spec: good() });
    expect((await scheduler.client.listTasks({})).tasks).to.have.length(1);
  });
});
