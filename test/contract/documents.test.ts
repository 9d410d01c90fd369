// Documents that list what the code has: nothing is missing in them, and nothing is there that has gone.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Code } from '@connectrpc/connect';
import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';
import { COMMANDS } from '../../clients/cli/commands/index.ts';
import { readTopology, topologySchema } from '../../services/common/config/topology.ts';
import { REASONS } from '../../services/common/errors.ts';
import {
  BUILDERS,
  EVALUATORS,
  HARNESSES,
  LOG_PARSERS,
  TEST_FORMATS,
} from '../../services/common/specs/catalogue.ts';
import { harborConfig, resultFileConfig } from '../../services/common/specs/live-grading.ts';
import { mathJudgeConfig, responseMatchConfig } from '../../services/common/specs/reply-evaluators.ts';
import { pluginConfig, testOnOutputConfig } from '../../services/common/specs/strategies.ts';
import { swebenchHarnessConfig } from '../../services/common/specs/swebench-harness.ts';
import { taskFileSchema } from '../../services/common/specs/task-file.ts';
import { ensureNatsServer } from '../../tools/nats-server.mjs';
import { Authority } from '../support/certificates.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/** Paths below the folders, without what is installed. */
const filesIn = (folders: readonly string[], named: RegExp): string[] =>
  folders
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true }).map((path) => join(folder, String(path))),
    )
    .filter((path) => named.test(path) && !path.includes('node_modules'));

/** Names in backquotes. */
const named = (text: string): Set<string> =>
  new Set([...text.matchAll(/`([\w.[\]]+)`/g)].flatMap(([, name = '']) => [name, ...name.split(/[.[\]]+/)]));

/** All keys of a schema, at any depth. */
function keysOf(schema: z.ZodType): string[] {
  const found = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { properties } = value as { properties?: object };
    if (properties !== undefined && !Array.isArray(properties)) {
      for (const key of Object.keys(properties)) found.add(key);
    }
    for (const below of Object.values(value)) visit(below);
  };
  visit(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
  return [...found];
}

describe('docs/errors.md', () => {
  const rows = [...read('docs/errors.md').matchAll(/^\| `(\w+)` \| `(\w+)` \| (again)? *\| (.+) \|$/gm)];

  it('has a row for each reason of the catalogue, with its code and what it does to an attempt', () => {
    const expected = Object.entries(REASONS).map(([reason, { code, infrastructure }]) => [
      reason,
      (Code[code] ?? '').replace(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toUpperCase(),
      infrastructure ? 'again' : undefined,
    ]);
    expect(rows.map(([, ...row]) => row.slice(0, 3))).to.have.deep.members(expected);
  });

  it('has reasons that something fails with', () => {
    const text = filesIn(['services', 'clients/cli'], /(?<!\.test)\.ts$/)
      .map(read)
      .join('\n');
    expect(Object.keys(REASONS).filter((reason) => !text.includes(`'${reason}'`))).to.deep.equal([]);
  });

  it('names limits that there are', () => {
    const limits = read('services/common/limits.ts');
    const all = rows.flatMap(([, , , , text = '']) => [...text.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)]);
    for (const [, name] of all) expect(limits).to.contain(`export const ${name} `);
    expect(all.length).to.be.greaterThan(5);
  });
});

describe('docs/topology.md', () => {
  it('has every key', () => {
    const text = read('docs/topology.md');
    // A default runtime is documented with task files.
    const runtime = taskFileSchema.shape.runtime;
    const keys = keysOf(topologySchema).filter((key) => !keysOf(z.object({ runtime })).includes(key));
    const parts = Object.keys(topologySchema.shape);
    for (const part of parts) expect(text).to.match(new RegExp(`^## ${part}\\b`, 'm'));
    expect([...named(text), ...parts]).to.include.members(keys);
  });
});

describe('docs/task-file.md', () => {
  it('has every key, harness, builder, evaluator and format of tests', () => {
    const evaluators = [
      ...[testOnOutputConfig, swebenchHarnessConfig, mathJudgeConfig, responseMatchConfig],
      ...[harborConfig, resultFileConfig],
    ];
    const schemas = [taskFileSchema, ...evaluators, pluginConfig];
    const text = read('docs/task-file.md');
    const names = [...schemas.flatMap(keysOf), ...LOG_PARSERS, ...HARNESSES, ...BUILDERS, ...EVALUATORS];
    const formats = TEST_FORMATS.map((format) => `\n| \`${format}\` `);
    for (const format of formats) expect(text).to.contain(format);
    for (const name of names) expect(text).to.match(new RegExp(`\\b${name}\\b`));
  });
});

describe('README.md', () => {
  it('names every command', () => {
    for (const { name } of COMMANDS) expect(read('README.md')).to.match(new RegExp(`\\b${name}\\b`));
  });
});

describe('CONTRIBUTING.md', () => {
  const text = read('CONTRIBUTING.md');
  const { scripts, dependencies } = JSON.parse(read('package.json')) as Record<string, object>;

  it('names every script, and none that has gone', () => {
    const named = [
      ...text.matchAll(/`(?:npm run )?((?:bench|breaking|test|train):[\w-]+)|`npm run (\w+)\b/g),
    ];
    const all = Object.keys(scripts ?? {}).filter((name) => !['start', 'test'].includes(name));
    expect(new Set(named.map(([, one, other]) => one ?? other))).to.have.all.keys(...all);
  });

  it('says what each package at run time is for', () => {
    const rows = text.slice(text.indexOf('| package | for |'));
    for (const name of Object.keys(dependencies ?? {})) expect(rows).to.contain(`\`${name}\``);
  });
});

describe('commands that users are told', () => {
  // The Node.js that the README asks for may be older than what runs TypeScript.
  it('run TypeScript on the Node.js of this folder, not on that of PATH', () => {
    const told = ['README.md', 'CONTRIBUTING.md', ...filesIn(['docs', 'services', 'examples'], /\.(md|ts)$/)];
    const commands = told.flatMap((path) =>
      [...read(path).matchAll(/(\w+ )?\bnode ([\w./-]+\.ts)/g)].map(([, before, file = '']) => ({
        before,
        file,
      })),
    );
    expect(commands.length).to.be.greaterThan(3);
    for (const { before, file } of commands) {
      expect(before, file).to.equal('npx ');
      expect(existsSync(join(ROOT, file)), file).to.equal(true);
    }
  });
});

describe('deploy', () => {
  interface Service {
    readonly image: string;
    readonly command?: readonly string[];
    readonly entrypoint?: readonly string[];
    readonly build?: { readonly dockerfile: string };
    readonly volumes?: readonly string[];
    readonly healthcheck?: { readonly test: string };
  }
  const composeOf = (file: string) =>
    parse(read(`deploy/${file}`), { merge: true }) as {
      readonly services: Readonly<Record<string, Service>>;
    };
  const compose = composeOf('docker-compose.yaml');
  const mounted = ({ volumes = [] }: Service): string[] =>
    volumes.flatMap((volume) => (volume.startsWith('./') ? [volume.split(':')[0] ?? ''] : []));

  it('has a topology that the services read, with the containers of the compose file in it', () => {
    const { nats, rollout, reconstructor, gateway } = readTopology(join(ROOT, 'deploy/topology.yaml'));
    const hosts = [
      nats.url ?? '',
      rollout.public_url,
      reconstructor.public_url,
      gateway.nodes[0]?.inference.base_url,
    ].map((url) => new URL(url ?? '').hostname);
    expect(Object.keys(compose.services)).to.include.members(hosts);
    for (const { id } of gateway.nodes) {
      expect(compose.services[id]?.command).to.deep.equal(['serve_gateway', '--node-id', id]);
    }
  });

  it('starts commands that there are, from files that there are', () => {
    const names = COMMANDS.map(({ name }) => name);
    for (const service of Object.values(compose.services)) {
      const { image, command, entrypoint, build } = service;
      if (image === 'polar-mesh' && command !== undefined) expect(names).to.include(command[0]);
      if (build !== undefined) expect(existsSync(join(ROOT, build.dockerfile))).to.equal(true);
      if (entrypoint !== undefined) expect(existsSync(join(ROOT, entrypoint[1] ?? ''))).to.equal(true);
      for (const file of mounted(service)) expect(existsSync(join(ROOT, 'deploy', file))).to.equal(true);
    }
  });

  it('has a value for each of its variables', () => {
    const files = ['docker-compose.yaml', 'compose.tls.yaml'].map((file) => read(`deploy/${file}`));
    const used = files.join('').matchAll(/\$\{(\w+)\}/g);
    const given = [...read('deploy/.env').matchAll(/^(\w+)=./gm)].map(([, name]) => name);
    expect(given).to.include.members([...used].map(([, name]) => name));
  });

  it('copies into the image what is there', () => {
    const copied = [...read('deploy/Dockerfile').matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, from = '']) =>
      from.split(' '),
    );
    for (const path of copied) expect(existsSync(join(ROOT, path)), path).to.equal(true);
    expect(copied).to.include.members(['bin', 'clients/cli', 'gen/ts', 'services', 'tools']);
  });

  it('has a configuration that nats-server takes', () => {
    execFileSync(ensureNatsServer(), ['-t', '-c', join(ROOT, 'deploy/nats.conf')], { stdio: 'pipe' });
  });

  it('has the same mesh with TLS on every port', () => {
    const { services } = composeOf('compose.tls.yaml');
    const mesh = Object.entries(compose.services).filter(([name]) => name !== 'engine');
    expect(services).to.have.all.keys(...mesh.map(([name]) => name));
    for (const [name, { healthcheck }] of mesh) {
      const { volumes = [], healthcheck: withTls } = services[name] as Service;
      for (const file of mounted({ image: '', volumes }))
        expect(existsSync(join(ROOT, 'deploy', file))).to.equal(true);
      expect(volumes.join()).to.match(/\$\{CERTS\}:\/etc\//);
      if (name === 'nats') continue;
      const secured = healthcheck?.test.replace('http:', '--cacert /etc/polar/certs/ca.pem https:');
      expect(withTls?.test).to.equal(secured);
    }
    const plain = readTopology(join(ROOT, 'deploy/topology.yaml'));
    const secure = readTopology(join(ROOT, 'deploy/topology.tls.yaml'));
    const text = JSON.stringify({ ...secure, tls: undefined, nats: { ...secure.nats, tls: undefined } });
    const asPlain = text.replace(/https:\/\/(?=rollout|node)/g, 'http://').replace('tls://', 'nats://');
    expect(JSON.parse(asPlain)).to.deep.equal(JSON.parse(JSON.stringify(plain)));
    expect(secure.tls).to.have.all.keys('cert_file', 'key_file', 'ca_file', 'client_ca_file');
  });

  it('has a configuration with TLS that nats-server takes', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-deploy-'));
    const authority = new Authority(folder, 'ca');
    authority.sign('mesh', ['DNS:nats']);
    const config = read('deploy/nats.tls.conf').replaceAll('/etc/nats/certs', folder);
    writeFileSync(join(folder, 'nats.tls.conf'), config);
    cpSync(join(ROOT, 'deploy/nats.conf'), join(folder, 'nats.conf'));
    execFileSync(ensureNatsServer(), ['-t', '-c', join(folder, 'nats.tls.conf')], { stdio: 'pipe' });
    rmSync(folder, { recursive: true });
  });
});
