// Direct reads of stored messages over a connection of their own.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { NatsConnection } from 'nats';
import { BLOB_CHUNK_BYTES, DIRECT_READ_MS } from '../../services/common/limits.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { type Place, Reads } from '../../services/common/nats/reads.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { CertificateStore } from '../../services/common/tls/certificates.ts';
import { Authority } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { startNats, type TestNats } from '../support/nats.ts';

describe('direct reads', () => {
  let nats: TestNats;
  let bus: Bus;
  const blobs = STREAMS.blobs.name;
  const stored = new Map<string, Uint8Array>();

  before(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
    // Around the size of what comes from a socket at once, and of none.
    const sizes = [0, 1, 63, 1_000, 65_534, 65_535, 65_536, 262_143, 262_144, 262_145, 524_288];
    for (const [i, size] of sizes.entries()) {
      const [subject, data] = [subjects.blobChunk('d', i), randomBytes(size)];
      await bus.js.publish(subject, data);
      stored.set(subject, data);
    }
  });
  after(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  it('give the last message of each subject to the byte, however many are asked for at once', async () => {
    const asked = Array.from({ length: 10 }, () => [...stored]).flat();
    const places = asked.map(([subject, { byteLength }]) => ({ subject, into: Buffer.alloc(byteLength) }));
    expect(await bus.reads.fill(blobs, places)).to.deep.equal([]);
    for (const [i, [subject, data]] of asked.entries()) {
      expect(places[i]?.into.equals(data), subject).to.equal(true);
    }
    expect(await bus.reads.fill(blobs, [])).to.deep.equal([]);
  });

  it('tell the places that nothing of their size is for, and fill the others', async () => {
    const [[first, one] = ['', Buffer.alloc(0)], [second, two] = ['', Buffer.alloc(0)]] = [...stored].slice(
      1,
    );
    const places = [
      { subject: first, into: Buffer.alloc(one.byteLength) },
      { subject: second, into: Buffer.alloc(two.byteLength + 1) },
      { subject: subjects.blobChunk('none', 0), into: Buffer.alloc(two.byteLength) },
      { subject: second, into: Buffer.alloc(two.byteLength) },
    ];
    expect(await bus.reads.fill(blobs, places)).to.have.members([places[1], places[2]]);
    expect(places.map(({ into }) => into.some((byte) => byte !== 0))).to.deep.equal([
      true,
      false,
      false,
      true,
    ]);
    expect(places[3]?.into.equals(two)).to.equal(true);
  });

  it('write nothing more into the places of a call that failed', async () => {
    const [[subject, data] = ['', Buffer.alloc(0)]] = [...stored].reverse();
    // Nobody listens to a subject that ends with a dot: that is told before anything is read.
    const into = Buffer.alloc(data.byteLength);
    const places = [
      { subject: '', into: Buffer.alloc(1) },
      { subject, into },
    ];
    const failed = await bus.reads.fill(blobs, places).catch((error: Error) => error.message);
    expect(failed).to.include('(503)');
    for (let i = 0; i < 10; i++) expect(await read(bus.reads, subject)).to.deep.equal(data);
    expect(into.every((byte) => byte === 0)).to.equal(true);
  });

  it('are left to the connection that has TLS where a server offers it and goes without', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-reads-'));
    const authority = new Authority(folder, 'ours');
    const { cert, key } = authority.sign('nats', ['IP:127.0.0.1']);
    const offered = `tls { cert_file: "${cert}", key_file: "${key}" }\nallow_non_tls: true`;
    await using offering = await startNats(offered);
    const tls = new CertificateStore({ ca_file: authority.file }, String);
    const secret = await openBus({ url: offering.url, name: 'test', tls });
    expect([secret.reads.usable, bus.reads.usable]).to.deep.equal([false, true]);
    await secret.close();
    rmSync(folder, { recursive: true });
  });

  /** One of the stored ones; undefined where there is none. */
  async function read(reads: Reads, subject: string): Promise<Uint8Array | undefined> {
    const place = { subject, into: Buffer.alloc(stored.get(subject)?.byteLength ?? 0) };
    return (await reads.fill(blobs, [place])).length === 0 ? place.into : undefined;
  }

  it('give nothing where nothing is, and fail where no stream is', async () => {
    expect(await read(bus.reads, subjects.blobChunk('none', 0))).to.equal(undefined);
    const place = { subject: 'x', into: Buffer.alloc(1) };
    const failed = await bus.reads.fill('NOWHERE', [place]).catch((error: Error) => error.message);
    expect(failed).to.include('no stream answers (503)');
  });

  it('find a message by a query, with its headers', async () => {
    const subject = subjects.trajectory('task', 'g0');
    const { seq } = await bus.acks.store(subject, Buffer.from('body'), { 'Polar-Blob-Sha256': 'abc' });
    const query = { seq: 1, next_by_subj: subjects.trajectoriesOf('task') };
    const message = await bus.reads.find(STREAMS.trajectories.name, query);
    expect(message).to.include({ seq, subject });
    expect(Buffer.from(message?.data ?? []).toString()).to.equal('body');
    expect(message?.header.get('Polar-Blob-Sha256')).to.equal('abc');
    expect(message?.header.get('Polar-Blob-Size')).to.equal('');
    expect(await bus.reads.find(STREAMS.trajectories.name, { ...query, seq: seq + 1 })).to.equal(undefined);
  });

  it('find several messages of one subject by one query, and fewer where there are no more', async () => {
    const subject = subjects.completion('listed', 1);
    const seqs: number[] = [];
    for (const size of [3, 0, 300_000]) {
      const { seq } = await bus.acks.store(subject, Buffer.alloc(size, 'x'), {});
      await bus.acks.store(subjects.completion('other', 1), Buffer.from('y'), {});
      seqs.push(seq);
    }
    const query = { seq: seqs[0], next_by_subj: subject };
    const { name } = STREAMS.completions;
    const lists = await Promise.all([3, 2, 10].map((count) => bus.reads.list(name, query, count)));
    expect(lists.map((list) => list.map(({ seq }) => seq))).to.deep.equal([seqs, seqs.slice(0, 2), seqs]);
    expect(lists[0]?.map(({ data }) => data.length)).to.deep.equal([3, 0, 300_000]);
    expect(await bus.reads.list(name, { ...query, seq: Number(seqs[2]) + 1 }, 3)).to.deep.equal([]);
  });

  it('fail when an answer stops in its middle or nobody takes the connection, and wait for a slow one', async () => {
    const [[subject, data] = ['', Buffer.alloc(0)]] = [...stored].reverse();
    // What passes, and then no more.
    let bytesMax = 200_000;
    const stops = async (): Promise<void> => {
      await using link = await relayed((chunk, pass) => {
        bytesMax -= chunk.length;
        if (bytesMax >= 0) pass();
      });
      const failed = await read(link.bus.reads, subject).catch((error: Error) => error);
      expect(failed).to.be.instanceOf(Error);
      bytesMax = Number.POSITIVE_INFINITY;
      const again = await read(link.bus.reads, subject);
      expect(Buffer.from(again ?? []).equals(data), 'over another connection').to.equal(true);
    };
    const hangs = async (): Promise<void> => {
      // Of a server whose queue is full no connection is refused, nor made.
      const full = `import socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(0)
all = [socket.socket() for _ in range(4)]
for one in all: one.setblocking(False); one.connect_ex(s.getsockname())
print(s.getsockname()[1], flush=True); sys.stdin.read()`;
      const child = spawn('python3', ['-c', full], { stdio: ['pipe', 'pipe', 'inherit'] });
      const [port] = (await once(child.stdout, 'data')) as [Buffer];
      const server = { getServer: () => `127.0.0.1:${port.toString().trim()}` };
      using reads = new Reads(server as NatsConnection);
      const failed = await read(reads, subject).catch((error: Error) => error);
      expect(failed).to.be.instanceOf(Error);
      child.stdin.end();
    };
    const creeps = async (): Promise<void> => {
      let waitsMs = 0;
      await using link = await relayed((chunk, pass) => {
        const ms = chunk.length / 70;
        waitsMs += ms;
        setTimeout(pass, ms);
      });
      const got = await read(link.bus.reads, subject);
      expect(Buffer.from(got ?? []).equals(data)).to.equal(true);
      expect(waitsMs, 'together longer than a wait for the next piece').to.be.greaterThan(DIRECT_READ_MS);
    };
    await Promise.all([stops(), creeps(), hangs()]);
  });

  /** A connection that the test stands in; `on` passes what the server sends. */
  async function relayed(on: (chunk: Buffer, pass: () => void) => void) {
    const relay = createServer((near) => {
      const far = connect(nats.port);
      far.on('data', (chunk: Buffer) => {
        far.pause();
        on(chunk, () => {
          near.write(chunk);
          far.resume();
        });
      });
      near.pipe(far);
      near.on('error', () => {}).on('close', () => far.destroy());
      far.on('error', () => {}).on('close', () => near.destroy());
    });
    await once(relay.listen(0, '127.0.0.1'), 'listening');
    const { port } = relay.address() as AddressInfo;
    const through = await openBus({ url: `nats://127.0.0.1:${port}`, name: 'relayed' });
    return {
      bus: through,
      async [Symbol.asyncDispose]() {
        await through.close();
        relay.close();
      },
    };
  }

  it('leave it to the leader of the stream to say that a blob is gone: a replica may be behind', async () => {
    const whole = createBlobStore(bus);
    const bodies = [BLOB_CHUNK_BYTES * 2 + 1, 3].map((size) => randomBytes(size));
    const refs = await Promise.all(bodies.map((one) => whole.put(one)));
    for (const usable of [true, false]) {
      const behind = {
        ...bus,
        direct: { getMessage: () => Promise.reject(new Error('no message found')) },
        reads: { usable, fill: async (_: string, places: readonly Place[]) => [...places] } as Bus['reads'],
      };
      const { blobs: found } = await createBlobStore(behind).getAll(refs);
      expect(found.map((one, i) => bodies[i]?.equals(one as Uint8Array))).to.deep.equal([true, true]);
    }
  });

  it('fail while the server is away, and go on when it is back', async () => {
    const [[subject, data] = ['', Buffer.alloc(0)]] = stored;
    await nats.kill();
    const failed = await read(bus.reads, subject).catch((error: Error) => error);
    expect(failed).to.be.instanceOf(Error);
    await nats.start();
    const isThere = async (): Promise<boolean> => {
      const got = await read(bus.reads, subject).catch(() => undefined);
      return got !== undefined && Buffer.from(got).equals(data);
    };
    await eventually('the message is read again', isThere);
  });
});
