// What must hold after a storm over a trainer, its reconstructor and its NATS server.
import { expect } from 'chai';
import type { StormResult } from './storm.ts';

/** Throws where a group was lost, trained on twice, or sent again without saying so. */
export function checkAccount(result: StormResult): void {
  const { published, trained, deliveries, killed, pending, fallen } = result;
  expect(fallen, 'nothing ended by itself').to.deep.equal([]);
  expect(
    [...trained].sort((a, b) => a - b),
    'each group once in the journal',
  ).to.deep.equal(published);
  expect(pending, 'nothing is left').to.equal(0);
  for (const [name, times] of Object.entries(killed)) expect(times, `${name} was killed`).to.be.at.least(1);
  const counts = new Map<number, number>();
  for (const { batchId, deliveryCount, redelivered } of deliveries) {
    expect(deliveryCount, `delivery of batch ${batchId}`).to.be.greaterThan(counts.get(batchId) ?? 0);
    expect(redelivered, `mark of batch ${batchId}`).to.equal(deliveryCount > 1);
    counts.set(batchId, deliveryCount);
  }
  expect(
    [...counts.keys()].sort((a, b) => a - b),
    'all were given',
  ).to.deep.equal(published);
}
