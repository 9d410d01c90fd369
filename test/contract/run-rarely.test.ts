// Programs that only long runs build and run, because of what they need: read here, so that they fit what they are for.
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  AckTrajectoriesRequestSchema,
  StreamTrajectoriesResponseSchema,
} from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  TraceSchema,
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';

const ROOT = join(import.meta.dirname, '../..');

describe('scripts of package.json', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };

  it('name files that there are, one by one: no shell and no program of all expands braces', () => {
    const named = Object.values(scripts).flatMap((script) =>
      script.split(' ').filter((word) => /\.(?:ts|mjs|js|py)$/.test(word)),
    );
    expect(named.length).to.be.greaterThan(20);
    expect(named.filter((file) => !existsSync(join(ROOT, file)))).to.deep.equal([]);
  });

  it('run each file that has tests which npm test leaves out', () => {
    const long = Object.values(scripts).filter((script) => script.includes('POLAR_TEST_LONG=1'));
    const files = globSync('{test,services}/**/*.test.ts', { cwd: ROOT });
    const partly = files.filter((file) => /from '.*\/long\.ts'/.test(readFileSync(join(ROOT, file), 'utf8')));
    expect(partly.length).to.be.greaterThan(10);
    expect(partly.filter((file) => !long.some((script) => script.includes(file)))).to.deep.equal([]);
  });
});

describe('readers in other languages', () => {
  const READ = [StreamTrajectoriesResponseSchema, TrajectoryBatchSchema, TrajectorySchema, TraceSchema];
  const goName = (name: string): string =>
    name.replace(/(?:^|_)(\w)/g, (_, first: string) => first.toUpperCase());
  const LANGUAGES = [
    {
      file: 'clients/go/main.go',
      nameOf: goName,
      reads: /\b(?:batch|trajectory|trace|Msg\(\))\.(?:Get)?([A-Z]\w*)/g,
      request: /AckTrajectoriesRequest\{(.+)\}/,
    },
    {
      file: 'clients/rust/src/main.rs',
      nameOf: (name: string) => name,
      reads: /\b(?:batch|message|one)\.([a-z_]+)\b(?!\()/g,
      request: /AckTrajectoriesRequest \{(.+)\}/,
    },
  ];
  for (const { file, nameOf, reads, request } of LANGUAGES) {
    it(`${file} reads fields that there are, and says all there is to say when it acknowledges`, () => {
      const source = readFileSync(join(ROOT, file), 'utf8');
      const fields = READ.flatMap((message) => message.fields.map(({ name }) => nameOf(name)));
      const read = new Set([...source.matchAll(reads)].map(([, name]) => name));
      expect(fields).to.include.members([...read]);
      expect(read.size).to.be.greaterThan(5);
      const said = request.exec(source)?.[1]?.match(/\w+/g) ?? [];
      expect(said).to.include.members(AckTrajectoriesRequestSchema.fields.map(({ name }) => nameOf(name)));
    });
  }
});

describe('trainers, their tests and their benchmark', () => {
  const PLACES = ['clients/python/src', 'clients/python/tests', 'examples/train_cpu', 'test/bench/ablation'];
  const faultsOf = (...files: string[]): string[] => {
    const script = join(ROOT, 'test/support/python-names.py');
    const args = [script, ...PLACES, '--', ...files];
    const said = execFileSync(join(ROOT, '.venv/bin/python'), args, { cwd: ROOT, encoding: 'utf8' });
    return said.split('\n').filter((line) => line !== '');
  };

  it('take from each other and from the client what is there, as it is called', () => {
    const files = globSync(
      ['clients/python/tests/trainers/*.py', 'examples/train_*/*.py', 'test/bench/ablation/*.py'],
      {
        cwd: ROOT,
      },
    );
    expect(files.length).to.be.greaterThan(20);
    expect(faultsOf(...files)).to.deep.equal([]);
  });

  it('are told where they do not', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-names-'));
    const file = join(folder, 'planted.py');
    const lines = [
      'import curves',
      'import polar_mesh.torch',
      'from polar_mesh import Client, Nobody',
      'curves.summary()',
      'curves.Summary(8, 512)',
      'curves.nothing',
      'polar_mesh.torch.pad(1, colour=2)',
    ];
    writeFileSync(file, lines.join('\n'));
    const found = faultsOf(file).map((fault) => fault.replace(/^.*planted\.py:(\d+): /, '$1 '));
    rmSync(folder, { recursive: true });
    expect(found).to.have.members([
      '3 polar_mesh has no Nobody',
      '4 summary() needs rows',
      '5 Summary() needs minutes',
      '6 curves has no nothing',
      '7 pad() has no argument colour',
    ]);
  });
});
