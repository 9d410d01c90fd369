// An existing NATS server, here one in a container: what POLAR_NATS_URL points to. The container is killed and started.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { GenericContainer, type StartedTestContainer, Wait } from 'testcontainers';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { openBus } from '../../services/common/nats/bus.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { ensureNatsServer } from '../../tools/nats-server.mjs';
import type { TestEngine } from '../support/container-engine.ts';
import { dockerProblem, startDocker } from '../support/docker.ts';
import { freePort } from '../support/nats.ts';

const IMAGE = 'polar-test-nats:latest';

describe('a NATS server in a container', function () {
  this.timeout(180_000);
  let docker: TestEngine | undefined;
  let container: StartedTestContainer | undefined;
  let url: string;
  before(async function () {
    const problem = await dockerProblem();
    if (problem !== undefined) {
      process.stdout.write(`      skipped: ${problem}\n`);
      return this.skip();
    }
    docker = await startDocker();
    process.env['DOCKER_HOST'] = docker.host;
    // The reaper is an image of a registry; what is made here ends with its own dockerd.
    process.env['TESTCONTAINERS_RYUK_DISABLED'] = 'true';
    // Without a bridge there is no gateway address to find.
    process.env['TESTCONTAINERS_HOST_OVERRIDE'] = '127.0.0.1';
    const root = mkdtempSync(join(tmpdir(), 'polar-test-image-'));
    mkdirSync(join(root, 'tmp'));
    copyFileSync(ensureNatsServer(), join(root, 'nats-server'));
    await docker.importFolder(root, IMAGE);
    rmSync(root, { recursive: true });
    const port = await freePort();
    url = `nats://127.0.0.1:${port}`;
    container = await new GenericContainer(IMAGE)
      .withNetworkMode('host')
      .withCommand(['/nats-server', '-a', '127.0.0.1', '-p', String(port), '-js', '-sd', '/store'])
      .withWaitStrategy(Wait.forLogMessage(/Server is ready/))
      .start();
  });
  after(async () => {
    await container?.stop({ timeout: 1 });
    await docker?.[Symbol.asyncDispose]();
  });

  it('holds the streams, and keeps what was acknowledged when the container is killed', async () => {
    const bus = await openBus({ url, name: 'external' });
    try {
      const blobs = createBlobStore(bus);
      const subject = subjects.completion('external', 1);
      await publish(bus, blobs, subject, new Uint8Array([1]), { msgId: 'external:1:0' });
      const id = String(container?.getId());
      await docker?.docker('kill', id);
      await docker?.docker('start', id);
      await publish(bus, blobs, subject, new Uint8Array([2]), { msgId: 'external:1:1' });
      const { state } = await bus.jsm.streams.info(STREAMS.completions.name);
      expect(state.messages).to.equal(2);
    } finally {
      await bus.close();
    }
  });
});
