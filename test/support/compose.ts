// deploy/docker-compose.yaml on a Docker engine of the test's own, with images that were made here.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { DockerComposeEnvironment, type StartedDockerComposeEnvironment } from 'testcontainers';
import { makeBaseImages, NATS_IMAGE, NODE_IMAGE } from './base-images.ts';
import { ROOT } from './cli.ts';
import type { TestEngine } from './container-engine.ts';
import { freePort } from './nats.ts';

const run = promisify(execFile);
const DEPLOY = join(ROOT, 'deploy');
const FILE = 'docker-compose.yaml';
const PROJECT = 'polar-test-mesh';
/** Until all are healthy. */
const START_MS = 180_000;

export interface ComposeMesh {
  /** Where it is reached from this machine, as the commands and the Python client read it. */
  readonly env: { readonly POLAR_ROLLOUT_URL: string; readonly POLAR_TRAJECTORY_URL: string };
  /** Id of the container of a service. */
  container(service: string): Promise<string>;
  /** With its volumes. */
  down(): Promise<void>;
}

/** Build the image, start the mesh, and wait until all of it is healthy. */
export async function startComposeMesh(docker: TestEngine): Promise<ComposeMesh> {
  await makeBaseImages(docker);
  const [rolloutPort, trajectoryPort] = [await freePort(), await freePort()];
  const env = {
    COMPOSE_PROJECT_NAME: PROJECT,
    BASE_IMAGE: NODE_IMAGE,
    NATS_IMAGE,
    // The engine has no bridge of its own to the registries.
    BUILD_NETWORK: 'host',
    ROLLOUT_PORT: String(rolloutPort),
    TRAJECTORY_PORT: String(trajectoryPort),
    DOCKER_HOST: docker.host,
    // The older docker-compose would build by a plug-in that there may not be.
    COMPOSE_DOCKER_CLI_BUILD: '0',
  };
  const [command = '', ...first] = await composeCommand();
  const build = [...first, '-f', FILE, 'build'];
  await run(command, build, { cwd: DEPLOY, env: { ...process.env, ...env }, maxBuffer: 1 << 26 });
  const started = await up(env, first.length === 0);
  const address = (port: number): string => `http://127.0.0.1:${port}`;
  return {
    env: { POLAR_ROLLOUT_URL: address(rolloutPort), POLAR_TRAJECTORY_URL: address(trajectoryPort) },
    async container(service) {
      const label = `label=com.docker.compose.service=${service}`;
      return (await docker.docker('ps', '--all', '--quiet', '--filter', label)).trim();
    },
    async down() {
      await started.down({ removeVolumes: true });
    },
  };
}

/** The plug-in of `docker`, or the older program of its own. */
async function composeCommand(): Promise<string[]> {
  return await run('docker', ['compose', 'version']).then(
    () => ['docker', 'compose'],
    () => ['docker-compose'],
  );
}

async function up(
  env: Record<string, string>,
  standalone: boolean,
): Promise<StartedDockerComposeEnvironment> {
  Object.assign(process.env, {
    DOCKER_HOST: env['DOCKER_HOST'],
    // The reaper is an image of a registry; what is made here ends with its own dockerd.
    TESTCONTAINERS_RYUK_DISABLED: 'true',
    // Without a bridge there is no gateway address to find.
    TESTCONTAINERS_HOST_OVERRIDE: '127.0.0.1',
  });
  const mesh = new DockerComposeEnvironment(DEPLOY, FILE)
    .withProjectName(PROJECT)
    .withEnvironment(env)
    .withStartupTimeout(START_MS);
  return await (standalone ? mesh.withClientOptions({ executable: { standalone } }) : mesh).up();
}
