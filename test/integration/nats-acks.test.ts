// Publishes that wait for their acknowledgement.

import { expect } from 'chai';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { jetstreamCode } from '../../services/common/nats/publish.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { eventually } from '../support/eventually.ts';
import { startNats, type TestNats } from '../support/nats.ts';

describe('acknowledged publishes', () => {
  let nats: TestNats;
  let bus: Bus;
  const subject = subjects.completion('acks', 1);
  const data = Buffer.from('x');
  const fault = async (published: Promise<unknown>): Promise<Error> =>
    published.then(
      () => expect.fail('it was stored'),
      (error: Error) => error,
    );

  before(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
  });
  after(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  it('tell the sequence of each, however many are under way', async () => {
    const acks = await Promise.all(Array.from({ length: 100 }, () => bus.acks.store(subject, data, {})));
    expect(acks.map(({ seq }) => seq)).to.deep.equal(Array.from({ length: 100 }, (_, i) => i + 1));
  });

  it('tell an equal message id, and what the stream refuses by its code', async () => {
    const named = { 'Nats-Msg-Id': 'one' };
    const { seq } = await bus.acks.store(subject, data, named);
    expect(await bus.acks.store(subject, data, named)).to.include({ seq, duplicate: true });
    const behind = { 'Nats-Expected-Last-Subject-Sequence': String(seq - 1) };
    expect(jetstreamCode(await fault(bus.acks.store(subject, data, behind)))).to.equal(10071);
  });

  it('take with them what nobody waits for, but for the newest; by itself that goes out a moment later', async () => {
    const heard: string[] = [];
    const all = bus.nc.subscribe('later.>', { callback: (_, { subject }) => heard.push(subject) });
    for (const name of ['first', 'second']) bus.acks.later(() => bus.nc.publish(`later.${name}`));
    bus.acks.soon(() => bus.nc.publish('later.next'));
    await bus.acks.store(subject, data, {});
    expect(heard).to.deep.equal(['later.first', 'later.next']);
    await eventually('it goes out by itself', () => heard.length === 3);
    expect(heard[2]).to.equal('later.second');
    bus.acks.later(() => bus.nc.publish('later.third'));
    await eventually('so does the next', () => heard.length === 4);
    all.unsubscribe();
  });

  it('go out together with what else is sent in the turn, in its order; what cannot be sent is told', async () => {
    const heard: string[] = [];
    const all = bus.nc.subscribe('polar.>', { callback: (_, { subject }) => heard.push(subject) });
    const failed: string[] = [];
    bus.acks.soon(() => bus.nc.publish('polar.first'));
    bus.acks.soon(
      () => bus.nc.publish('polar.wrong', {} as Uint8Array),
      ({ message }) => failed.push(message),
    );
    const stored = bus.acks.store(subject, data, {});
    bus.acks.soon(() => bus.nc.publish('polar.last'));
    await stored;
    await bus.nc.flush();
    expect(heard).to.deep.equal(['polar.first', subject, 'polar.last']);
    expect(failed).to.have.length(1);
    all.unsubscribe();
  });

  it('lose nothing that was sent in the turn in which the connection is closed', async () => {
    const closing = await openBus({ url: nats.url, name: 'closing' });
    const heard = new Promise((resolve) => {
      bus.nc.subscribe('polar.farewell', { max: 1, callback: resolve });
    });
    await bus.nc.flush();
    closing.acks.soon(() => closing.nc.publish('polar.farewell'));
    await closing.close();
    await heard;
  });

  it('fail where no stream takes the subject', async () => {
    expect((await fault(bus.acks.store('polar.nowhere', data, {}))).message).to.include('no stream');
  });

  it('refuse a header of more than one line', async () => {
    const fields = { 'Nats-Msg-Id': 'one\r\nPolar: two' };
    expect((await fault(bus.acks.store(subject, data, fields))).message).to.include('more than one line');
  });

  it('fail while the server is away, and go on when it is back', async () => {
    await nats.kill();
    expect((await fault(bus.acks.store(subject, data, {}))).message).to.include('no acknowledgement');
    await nats.start();
    let seq = 0;
    while (seq === 0) {
      seq = await bus.acks.store(subject, data, {}).then(
        (ack) => ack.seq,
        () => 0,
      );
    }
    expect(seq).to.be.above(100);
  }).timeout(60_000);
});
