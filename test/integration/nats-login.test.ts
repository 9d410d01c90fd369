// NATS servers that ask who is there: by user and password, by a token, by a file of credentials; and what their users may not.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { readCommonConfig } from '../../services/common/config/environment.ts';
import type { PolarError } from '../../services/common/errors.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { polar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { loggedLines } from '../support/logged-lines.ts';
import { startNats, type TestNats, unclaimedPorts } from '../support/nats.ts';
import { natsAccounts } from '../support/nats-accounts.ts';

const PASSWORD = 'p/s3cret,@';
const CODED = encodeURIComponent(PASSWORD);
const TOKEN = 't0ken-of-the-mesh';
const SECRETS = /s3cret|t0ken/;

/** As docs/topology.md lists them. */
const RIGHTS = '["polar.v1.>", "$JS.API.>", "$JS.ACK.>", "$KV.>", "_INBOX.>"]';
const LIMITED = `deny: ["${subjects.completion('forbidden', 1)}"]`;
const BY_PASSWORD = `authorization { users = [
  { user: mesh, password: "${PASSWORD}", permissions: { publish: { allow: ${RIGHTS} }, subscribe: { allow: ${RIGHTS} } } }
  { user: limited, password: "${PASSWORD}", permissions: { publish: { ${LIMITED} } } }
  { user: none, password: "${PASSWORD}", permissions: { publish: { deny: "$JS.API.>" } } }
] }`;

const refused = async (opening: Promise<Bus>): Promise<PolarError> => {
  const [error] = (await Promise.allSettled([opening])).map((one) =>
    one.status === 'rejected' ? one.reason : expect.fail('was let in'),
  );
  expect(String(error?.stack)).not.to.match(SECRETS);
  return error;
};

/** A message goes in, and comes out by the connection for reads. */
async function serves(bus: Bus, id: string): Promise<void> {
  try {
    const subject = subjects.completion(id, 1);
    await publish(bus, createBlobStore(bus), subject, new Uint8Array([1, 2]));
    expect(bus.reads.usable).to.equal(true);
    const found = await bus.reads.find(STREAMS.completions.name, { last_by_subj: subject });
    expect([...(found?.data ?? [])]).to.deep.equal([1, 2]);
  } finally {
    await bus.close();
  }
}

/** What is in all files below a folder. */
const textsBelow = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
    .join('\n');

describe('a NATS server that asks for a login', function () {
  this.timeout(60_000);
  const open: TestNats[] = [];
  let folder: string;
  let byPassword: TestNats;
  const started = async (config: string): Promise<TestNats> => {
    const nats = await startNats(config);
    open.push(nats);
    return nats;
  };
  const as = (user: string, password = CODED): string =>
    `nats://${user}:${password}@127.0.0.1:${byPassword.port}`;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-login-'));
    byPassword = await started(BY_PASSWORD);
  });
  after(async () => {
    await Promise.all(open.map((nats) => nats[Symbol.asyncDispose]()));
    rmSync(folder, { recursive: true, force: true });
  });

  it('takes user and password of the address, or those that the topology names', async () => {
    await serves(await openBus({ url: as('mesh'), name: 'test' }), 'by-url');
    const file = join(folder, 'topology.yaml');
    const nats = { url: byPassword.url, user: 'mesh', password_env: 'NATS_PASSWORD' };
    writeFileSync(file, stringify({ nats }));
    const config = readCommonConfig({ POLAR_TOPOLOGY: file, NATS_PASSWORD: PASSWORD });
    await serves(await openBus({ ...config.nats, name: 'test' }), 'by-variable');
  });

  it('takes a token', async () => {
    const nats = await started(`authorization { token: "${TOKEN}" }`);
    await serves(await openBus({ url: `nats://${TOKEN}@127.0.0.1:${nats.port}`, name: 'test' }), 'by-token');
    const { reason } = await refused(openBus({ url: as('t0ken', ''), name: 'test' }));
    expect(reason).to.equal('NATS_REFUSED');
  });

  it('takes a file of credentials, and takes up a new one', async () => {
    const { config, creds } = natsAccounts();
    const nats = await started(config);
    const file = join(folder, 'user.creds');
    const credentials = { named: 'nats.creds_file', read: () => ({ creds: readFileSync(file) }) };
    const opened = () => openBus({ url: nats.url, credentials, name: 'test' });
    for (const [content, told] of [
      ['', 'nats.creds_file: holds no JWT'],
      [natsAccounts().creds, 'it refuses nats.creds_file'],
    ] as const) {
      writeFileSync(file, content);
      expect((await refused(opened())).message).to.contain(told);
    }
    writeFileSync(file, creds);
    const bus = await opened();
    rmSync(file);
    await nats.kill();
    await nats.start();
    await serves(bus, 'by-file');
  });

  it('refuses a wrong login, or none, at once and by name', async () => {
    const wrong = await refused(openBus({ url: as('mesh', 's3cret'), name: 'test' }));
    expect(wrong.reason).to.equal('NATS_REFUSED');
    expect(wrong.message).to.contain(
      `NATS at ${byPassword.url}: it refuses the login in POLAR_NATS_URL or nats.url`,
    );
    const none = await refused(openBus({ url: byPassword.url, name: 'test' }));
    expect(none.reason).to.equal('NATS_REFUSED');
    expect(none.message).to.contain('nats.password_env').and.contain('nats.creds_file');
  });

  it('says why a connection does not come back whose login was changed there', async () => {
    const nats = await started(`authorization { token: "${TOKEN}" }`);
    const { log, lines } = loggedLines();
    const bus = await openBus({ url: `nats://${TOKEN}@127.0.0.1:${nats.port}`, name: 'test', log });
    try {
      await nats.kill();
      const file = join(nats.store, '..', 'nats.conf');
      writeFileSync(file, readFileSync(file, 'utf8').replace(TOKEN, 'another'));
      await nats.start();
      const told = `NATS at ${nats.url}: it refuses the login in POLAR_NATS_URL or nats.url`;
      await eventually('the log says so', () => lines.some((line) => line.includes(told)));
      expect(lines[0]).to.contain('connection to NATS lost');
      const storing = bus.acks.store(subjects.completion('refused', 1), new Uint8Array([1]), {});
      const error: Error = await storing.then(
        () => expect.fail('was stored'),
        (thrown) => thrown,
      );
      expect(error.message).to.contain(told);
      expect(lines.join() + error.stack).not.to.match(SECRETS);
      await nats.kill();
      writeFileSync(file, readFileSync(file, 'utf8').replace('another', TOKEN));
      await nats.start();
      await eventually('it is back', () => /is there again/.test(lines.at(-1) ?? ''));
      await serves(bus, 'back');
    } finally {
      await bus.close();
    }
  });

  it('says which subject a user has no permission for', async () => {
    const { reason, message } = await refused(openBus({ url: as('none'), name: 'test' }));
    expect(reason).to.equal('NATS_REFUSED');
    expect(message).to.contain('publish to $JS.API.');
    const bus = await openBus({ url: as('limited'), name: 'test' });
    try {
      const subject = subjects.completion('forbidden', 1);
      const publishing = publish(bus, createBlobStore(bus), subject, new Uint8Array([1]));
      const error: PolarError = await publishing
        .then(() => expect.fail('was stored'))
        .catch((thrown) => thrown);
      expect(error.reason).to.equal('NATS_REFUSED');
      expect(error.message).to.contain(`publish to ${subject}`);
    } finally {
      await bus.close();
    }
  });

  it('holds a mesh, and nothing that is shown or written has its login', async () => {
    const data = join(folder, 'data');
    const env = { POLAR_NATS_URL: as('mesh') };
    const { code, stdout, stderr } = await polar(['up', '--example', '--once', '--data-dir', data], { env });
    expect(code, stderr).to.equal(0);
    expect(stdout).to.contain(byPassword.url);
    const written = textsBelow(data);
    expect(written).to.contain('gateway:');
    expect(stdout + stderr + written).not.to.match(SECRETS);
    const log = readFileSync(join(byPassword.store, '..', 'log'), 'utf8');
    expect(log.match(/.*user:limited" - .* Violation.*/g), 'is told so').not.to.equal(null);
    expect(log.match(/.*user:mesh" - .* Violation.*/g), 'may do all that a mesh does').to.equal(null);
  });

  it('refuses a mesh with a wrong login at once', async () => {
    const data = join(folder, 'wrong');
    const [rollout, reconstructor, proxy, sandboxes, executor, evaluator] = await unclaimedPorts(6);
    const node = { port: proxy, runtime_prewarm_port: sandboxes, harness_executor_port: executor };
    const file = join(folder, 'wrong.yaml');
    const ports = { rollout: { port: rollout }, reconstructor: { port: reconstructor } };
    const gateway = { nodes: [{ ...node, evaluator_port: evaluator }] };
    writeFileSync(file, stringify({ nats: { url: as('mesh', 's3cret') }, ...ports, gateway }));
    const { code, stdout, stderr } = await polar(['up', '-c', file, '--data-dir', data]);
    expect(code, stderr).to.equal(3);
    expect(stderr).to.contain('NATS_REFUSED').and.contain(byPassword.url);
    expect(stdout + stderr + textsBelow(data)).not.to.match(SECRETS);
  });
});
