// Small trees, each with violations of one rule among things that only look like it.
import type { RULES } from './rules.ts';

interface Planted {
  readonly files: Readonly<Record<string, string>>;
  /** `file:line`, line 0 for a file as a whole. */
  readonly faults: readonly string[];
}

const SERVICES = [
  'scheduler',
  'runtime-prewarm',
  'harness-executor',
  'llm-proxy',
  'reconstructor',
  'evaluator',
];

/** Put together here, so that this file itself names none. */
const host = (...parts: readonly string[]): string => parts.join('.');

const lines = (count: number, text = 'n += 1;'): string => `${text}\n`.repeat(count);

const README = '# x\n## RPCs\nOneThing\n## Subjects\n## Environment\n## Failures\n## Runbook\n';

/** A service as it should be. */
const service = (name: string): [string, string][] => [
  [
    `proto/polar/${name.replaceAll('-', '_')}/v1/x_service.proto`,
    'service X {\n  rpc OneThing(A) returns (B);\n}\n',
  ],
  ...['main.ts', 'config.ts', 'context.ts', 'service.ts', 'events.ts', 'metrics.ts'].map(
    (file): [string, string] => [`services/${name}/${file}`, ''],
  ),
  [`services/${name}/README.md`, README],
  [`services/${name}/routes/index.ts`, ''],
  [`services/${name}/routes/one-thing.ts`, ''],
  [`services/${name}/consumers/work.ts`, ''],
  [`services/${name}/domain/a.ts`, ''],
];

const six = (changes: Readonly<Record<string, string | undefined>>): Record<string, string> => {
  const all = { ...Object.fromEntries(SERVICES.flatMap(service)), ...changes };
  return Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
};

export const PLANTED_FOR_RULES: Record<keyof typeof RULES, Planted> = {
  fileLength: {
    files: { 'a.ts': lines(401), 'b.ts': lines(400), 'c.md': lines(900), 'd.py': lines(401) },
    faults: ['a.ts:0', 'd.py:0'],
  },
  functionLength: {
    files: {
      'a.ts': `function ok() {\n${lines(68, '  n();')}}\nexport function long() {\n${lines(69, '  n();')}}\n`,
      'b.ts': `class A {\n${lines(80, '  readonly n = 1;')}}\nconst o = {\n${lines(80, '  n: 1,')}};\n`,
      'c.ts': `class A {\n  async #long<T>(a: T): Promise<T> {\n${lines(70, '    n();')}  }\n}\n`,
      'd.ts': `export async function long(\n  a: A,\n): Promise<B> {\n${lines(68, '  n();')}}\n`,
      'e.ts': `call(1, async () => {\n${lines(70, '  n();')}});\ndescribe('x', () => {\n${lines(90, '  it();')}});\n`,
      'f.ts': `if (call(a)) {\n${lines(80, '  n();')}}\nfor (const a of b()) {\n${lines(80, '  n();')}}\n`,
      'g.py': `def ok():\n${lines(69, '    n()')}\nclass A:\n    def long(\n        self,\n    ) -> None:\n${lines(68, '        n()')}`,
    },
    faults: ['a.ts:71', 'c.ts:2', 'd.ts:1', 'e.ts:1', 'g.py:73'],
  },
  noMarks: {
    files: { 'a.ts': '// ok\n// TODO: later\n', 'b.md': 'FIXME\n', 'c.ts': 'const TODOS = 1;\n' },
    faults: ['a.ts:2', 'b.md:1'],
  },
  noLeftOutTests: {
    files: {
      'test/a.test.ts': "it.only('x');\nthis.skip();\ndescribe.skip('y');\nxit('z');\nit('ok');\n",
      'services/a/b.test.ts': "context.skip('x');\n",
      'services/a/b.ts': 'it.skip();\n',
    },
    faults: ['test/a.test.ts:1', 'test/a.test.ts:3', 'test/a.test.ts:4', 'services/a/b.test.ts:1'],
  },
  noMachinePaths: {
    files: {
      'a.md': `see ${['', 'work', 'shared', 'x'].join('/')}\n/home/me\n`,
      'b.ts': "'/Users/me/x';\n'/polar/session/workspace';\n'a/work/b';\n'/usr/bin';\n'x/home/y';\n",
    },
    faults: ['a.md:1', 'a.md:2', 'b.ts:1'],
  },
  noRegistryHosts: {
    files: {
      'a.sh': 'npm ci --registry=https://x.y\npip install --index-url https://x.y\npip install x\n',
      'b.md': `https://${host('registry', 'npmjs', 'org')}/x\nhttps://${host('pypi', 'org')}/x\nfrom PyPI\nhttps://artifactory.corp.io/x\n`,
    },
    faults: ['a.sh:1', 'a.sh:2', 'b.md:1', 'b.md:2', 'b.md:4'],
  },
  noResolvedInLock: {
    files: {
      'package-lock.json': '{\n  "resolved": "https://x/y.tgz",\n  "integrity": "z"\n}\n',
      'a.json': '"resolved": 1',
    },
    faults: ['package-lock.json:2'],
  },
  noSynonyms: {
    files: {
      'proto/a.proto': 'bytes response_mask = 1;\nbytes loss_mask = 2;\nstring rollout_id = 3;\n',
      'services/a/b.ts': 'const logProbs = 1;\nconst logprobs = 2;\nconst sandboxId = 3;\n',
      'services/llm-proxy/engines/vllm.ts': 'const log_probs = 1;\n',
      'clients/python/a.py': 'completion_ids = 1\n',
      'docs/a.md': 'the episode\n',
    },
    faults: [
      'proto/a.proto:1',
      'proto/a.proto:3',
      'services/a/b.ts:1',
      'services/a/b.ts:3',
      'clients/python/a.py:1',
    ],
  },
  natsNamesInOnePlace: {
    files: {
      'services/common/nats/streams.ts': "const name = 'POLAR_STATE';\n",
      'services/a/b.ts':
        "const s = 'POLAR_WORK';\n// in 'POLAR_WORK'\nconst t = `polar.v1.hb.x`;\nconst b = 'polar_cursors';\n" +
        "env['POLAR_TOPOLOGY'];\nconst typeName = 'polar.scheduler.v1.RolloutService';\n",
      'test/integration/a.test.ts': "'POLAR_WORK';\n",
    },
    faults: ['services/a/b.ts:1', 'services/a/b.ts:3', 'services/a/b.ts:4'],
  },
  pureDomain: {
    files: {
      'services/a/domain/b.ts':
        'Date.now();\nnew Date(ms);\nnew Date();\nMath.random();\nMath.max(1);\nconsole.log(1);\nrandomBytes(3);\nprocess.exit();\n',
      'services/a/domain/b.test.ts': 'Date.now();\n',
      'services/a/routes/b.ts': 'Date.now();\n',
    },
    faults: [1, 3, 4, 6, 7, 8].map((line) => `services/a/domain/b.ts:${line}`),
  },
  sameLayout: {
    files: six({
      'services/evaluator/events.ts': undefined,
      'services/evaluator/domain/a.ts': undefined,
      'services/scheduler/helpers.ts': '',
      'services/scheduler/service.test.ts': '',
      'services/llm-proxy/engines/sglang.ts': '',
    }),
    faults: [
      'services/evaluator/events.ts:0',
      'services/evaluator/domain/:0',
      'services/scheduler/helpers.ts:0',
    ],
  },
  oneRpcOneFile: {
    files: six({
      'services/evaluator/routes/one-thing.ts': undefined,
      'services/scheduler/routes/two.ts': '',
      'services/scheduler/routes/one-thing.test.ts': '',
    }),
    faults: ['services/evaluator/routes/one-thing.ts:0', 'services/scheduler/routes/two.ts:0'],
  },
  readmes: {
    files: six({
      'services/evaluator/README.md': README.replace('OneThing', ''),
      'services/scheduler/README.md': README.replace('## Runbook', 'Runbook'),
    }),
    faults: ['services/evaluator/README.md:0', 'services/scheduler/README.md:0'],
  },
  contextAsType: {
    files: {
      'services/a/routes/b.ts': "import { createContext } from '../context.ts';\n",
      'services/a/routes/c.ts': "import type { AContext } from '../context.ts';\n",
      'services/a/consumers/d.ts': "import { type AContext } from '../context.ts';\n",
      'services/a/service.ts': "import { createContext } from './context.ts';\n",
    },
    faults: ['services/a/routes/b.ts:0'],
  },
  linksExist: {
    files: {
      'README.md': '[a](docs/a.md#x) [b](docs/b.md) [c](https://x/y.md) [d](#here) [e](docs) [f](./gone/)\n',
      'docs/a.md': '[up](../README.md) [gone](b.md)\n',
      'services/a.ts': '// see docs/a.md\n// see docs/c.md\n',
    },
    faults: ['README.md:0', 'README.md:0', 'docs/a.md:0', 'services/a.ts:0'],
  },
  noDeadFiles: {
    files: {
      'package.json': '{ "scripts": { "x": "node tools/x.mjs", "z": "python3 tools/z.py" } }',
      'services/a/main.ts': "import { b } from './b.ts';\nspawn(join(here, 'helper.sh'));\n",
      'services/a/b.ts': "const c = await import('./c.ts');\n",
      'services/a/c.ts': '',
      'services/a/helper.sh': '',
      'services/a/dead.ts': "import './only-from-dead.ts';\n",
      'services/a/only-from-dead.ts': '',
      'services/a/tested.ts': '',
      'services/a/tested.test.ts': "import './tested.ts';\nimport '../../test/support/used.ts';\n",
      'test/support/used.ts': '',
      'test/support/unused.ts': '',
      'tools/x.mjs': '',
      'tools/y.mjs': '',
      'tools/z.py': 'import os\nfrom imported import one  # noqa\n',
      'tools/imported.py': '',
      'tools/dead.py': '',
    },
    faults: [
      'tools/dead.py:0',
      'services/a/dead.ts:0',
      'services/a/only-from-dead.ts:0',
      'services/a/tested.ts:0',
      'test/support/unused.ts:0',
      'tools/y.mjs:0',
    ],
  },
  noUnusedExports: {
    files: {
      'services/a.ts':
        'export const USED = 1;\nexport const OWN = 2;\nexport function dead(): void {}\nexport interface Shape {}\n',
      'services/a.test.ts': "import { USED } from './a.ts';\nconst left = OWNED;\n",
      'bin/b.js': 'export async function alone() {}\n',
      'services/c.ts': 'export const NAMESAKE = 1;\n',
      'services/d.ts': "import { e } from './e.ts';\nconst NAMESAKE = e;\n",
      'services/e.ts': 'export const e = 1;\n',
      'c.md': 'OWN\n',
    },
    faults: ['services/a.ts:2', 'services/a.ts:3', 'bin/b.js:1', 'services/c.ts:1'],
  },
};

interface PlantedForBiome {
  readonly text: string;
  /** Without `lint/`. */
  readonly rules: readonly string[];
}

const imports = (...paths: readonly string[]): string =>
  `${paths.map((path, i) => `import { a${i} } from '${path}';\n`).join('')}export const all = [${paths.map((_, i) => `a${i}`)}];\n`;

const LAYERS = 'style/noRestrictedImports';

export const PLANTED_FOR_BIOME: Readonly<Record<string, PlantedForBiome>> = {
  'services/scheduler/domain/bad.ts': {
    text: imports(
      'node:fs',
      'nats',
      '../context.ts',
      '../../common/nats/bus.ts',
      '../../common/logger.ts',
      '../../evaluator/domain/a.ts',
    ),
    rules: Array.from({ length: 6 }, () => LAYERS),
  },
  'services/scheduler/domain/good.ts': {
    text: imports(
      './queue.ts',
      'node:crypto',
      '@bufbuild/protobuf',
      '@bufbuild/protobuf/wkt',
      '../../common/errors.ts',
      '../../common/limits.ts',
      '../../common/specs/catalogue.ts',
      '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js',
    ),
    rules: [],
  },
  'services/scheduler/routes/bad.ts': {
    text: imports('../service.ts', '../consumers/facts.ts', '../../evaluator/events.ts', '../config.ts'),
    rules: Array.from({ length: 4 }, () => LAYERS),
  },
  'services/scheduler/routes/good.ts': {
    text: imports(
      './page.ts',
      '../context.ts',
      '../events.ts',
      '../domain/queue.ts',
      '../../common/clock.ts',
      '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js',
    ),
    rules: [],
  },
  'services/scheduler/service.ts': {
    text: imports('../llm-proxy/context.ts', '../../test/support/nats.ts', '../../clients/cli/main.ts'),
    rules: [LAYERS, LAYERS, LAYERS],
  },
  'services/scheduler/service.test.ts': {
    text: imports('../../test/support/nats.ts'),
    rules: [],
  },
  'services/common/port.ts': {
    text: imports('../scheduler/service.ts', './clock.ts'),
    rules: [LAYERS],
  },
  'clients/cli/bad.ts': {
    text: imports('../../services/scheduler/domain/queue.ts', '../../services/common/client.ts'),
    rules: [LAYERS],
  },
  'services/evaluator/cycle.ts': {
    text: "import { b } from './cycle-b.ts';\nexport const a = () => b;\n",
    rules: ['suspicious/noImportCycles'],
  },
  'services/evaluator/cycle-b.ts': {
    text: "import { a } from './cycle.ts';\nexport const b = () => a;\n",
    rules: ['suspicious/noImportCycles'],
  },
  'services/evaluator/long.ts': {
    text: `export function long(n: number): number {\n${lines(71, '  n += 1;')}  return n;\n}\n`,
    rules: ['complexity/noExcessiveLinesPerFunction'],
  },
  'services/evaluator/habits.ts': {
    text: "console.log(process.env['A']);\nexport default 1;\n",
    rules: ['style/noDefaultExport', 'style/noProcessEnv', 'suspicious/noConsole'],
  },
  'services/evaluator/config.ts': {
    text: "export const home = process.env['HOME'];\n",
    rules: [],
  },
  'services/evaluator/promises.ts': {
    text: 'async function a(): Promise<void> {}\nexport function b(): void {\n  a();\n}\n',
    rules: ['nursery/noFloatingPromises'],
  },
  'test/left-out.test.ts': {
    text: "it.only('a', () => {});\ndescribe.skip('b', () => {});\n",
    rules: ['suspicious/noFocusedTests', 'suspicious/noSkippedTests'],
  },
};
