// What a strict file is told of its faults.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { z } from 'zod';
import { asPolarError, type FieldFault, PolarError } from '../errors.ts';
import { parseStrict, readText } from './faults.ts';

const node = z.strictObject({ id: z.string(), max_run_workers: z.number().default(1) });
const schema = z.strictObject({
  num_samples: z.number().optional(),
  runtime: z.strictObject({ image: z.string() }).optional(),
  gateway: z.strictObject({ nodes: z.array(node).default([]) }).prefault({}),
});

describe('faults of a strict file', () => {
  const faultsOf = (text: string): readonly FieldFault[] => {
    try {
      parseStrict(schema, text, 'a.yaml', 'INVALID_TASK');
      return [];
    } catch (error) {
      const { reason, fields } = asPolarError(error);
      expect(reason).to.equal('INVALID_TASK');
      return fields;
    }
  };

  it('name the key that was meant, where one is near', () => {
    const meant: [string, string, string][] = [
      ['num_sample: 4', 'num_sample', 'num_samples'],
      ['Num_Samples: 4', 'Num_Samples', 'num_samples'],
      ['runtime: {image: x, imge: x}', 'runtime.imge', 'image'],
      [
        'gateway: {nodes: [{id: a, max_run_wrokers: 1}]}',
        'gateway.nodes[0].max_run_wrokers',
        'max_run_workers',
      ],
    ];
    for (const [text, field, near] of meant) {
      expect(faultsOf(text)).to.deep.equal([{ field, description: `unknown key; did you mean ${near}?` }]);
    }
    for (const far of ['samples', 'x', '__proto__', 'constructor', 'n'.repeat(1_000)]) {
      expect(faultsOf(`${far}: 4`)).to.deep.equal([{ field: far, description: 'unknown key' }]);
    }
  });

  it('say that a field is missing, and how a text with a colon is written', () => {
    expect(faultsOf('runtime: {}\ngateway: {nodes: [{}]}')).to.deep.equal([
      { field: 'runtime.image', description: 'is missing' },
      { field: 'gateway.nodes[0].id', description: 'is missing' },
    ]);
    for (const text of ['x: a\n y: 1', 'x: 1\ny: fix: the bug']) {
      expect(faultsOf(text)[0]?.description).to.include('quote a text that holds ": "');
    }
  });

  it('tell aliases that would make too much of it, and a second document', () => {
    const names = [...'abcdefgh'];
    const lines = names.map((name, i) => {
      const inner = i === 0 ? 'x' : `*${names[i - 1]}`;
      return `${name}: &${name} [${Array.from({ length: 9 }, () => inner)}]`;
    });
    expect(faultsOf(lines.join('\n')).map(({ field }) => field)).to.deep.equal(['(document)']);
    expect(faultsOf('num_samples: 1\n---\nnum_samples: 2\n')).to.deep.equal([
      { field: 'line 2, column 1', description: 'another document begins; one is read' },
    ]);
  });

  it('are none of merge keys, but what is no mapping, or would make too much of it', () => {
    const text = 'gateway: {nodes: [&n {id: a, max_run_workers: 3}, {<<: *n, id: b}]}';
    expect(parseStrict(schema, text, 'a.yaml', 'INVALID_TASK').gateway.nodes).to.deep.equal([
      { id: 'a', max_run_workers: 3 },
      { id: 'b', max_run_workers: 3 },
    ]);
    expect(faultsOf('runtime: {<<: 3}').map(({ field }) => field)).to.deep.equal(['(document)']);
    const lines = Array.from({ length: 9 }, (_, i) => `k${i}: &k${i} {<<: [${Array(9).fill(`*k${i - 1}`)}]}`);
    lines[0] = 'k0: &k0 {image: x}';
    expect(faultsOf(lines.join('\n')).map(({ field }) => field)).to.deep.equal(['(document)']);
  });

  it('are none of keys, which are as they are written, but of one that is no text', () => {
    const free = z.strictObject({ row: z.record(z.string(), z.json()) });
    const text = 'row: {001: a, 010: b, 1.10: c, 1.1: d, 1e3: e, true: f, ~: g, 9007199254740993: h}';
    const keys = ['001', '010', '1.10', '1.1', '1e3', 'true', '~', '9007199254740993'];
    expect(parseStrict(free, text, 'a.yaml', 'INVALID_TASK').row).to.have.all.keys(keys);
    expect(faultsOf('runtime: {image: {{image}}}')).to.deep.equal([
      {
        field: 'line 1, column 19',
        description: 'a mapping or list stands as a key: quote a text that begins with { or [',
      },
    ]);
  });

  it('tell a tag that nobody knows, and an alias within what it names', () => {
    expect(faultsOf('runtime:\n  image: !include image.txt')).to.deep.equal([
      { field: 'line 2, column 10', description: 'Unresolved tag: !include' },
    ]);
    expect(faultsOf('runtime: &r {image: *r}')).to.deep.equal([
      { field: '(document)', description: 'an alias stands within what it names' },
    ]);
    expect(faultsOf('runtime: &r {image: !!str 3}\ngateway: {nodes: [{id: a}]}')).to.deep.equal([]);
  });

  it('tell integers that would be read as others, and none that are exact', () => {
    const row = (text: string): string => `num_samples: 1\nrow: ${text}`;
    const free = z.strictObject({ num_samples: z.int().max(9), row: z.json() });
    const read = (text: string): unknown => parseStrict(free, text, 'a.yaml', 'INVALID_TASK').row;
    const large = 9_007_199_254_740_993n;
    for (const [text, field] of [
      [row(`${large}`), 'row'],
      [row(`{of: [{id: 1}, {id: -${large}}]}`), 'row.of[1].id'],
      [row('{"of": [0, 0x20000000000001, 1]}'), 'row.of[1]'],
      [row(`{a: &a {id: ${large}}, b: *a}`), 'row.a.id'],
      [`num_samples: ${large}\nrow: 1`, 'num_samples'],
    ] as const) {
      expect(() => read(text), text)
        .to.throw(PolarError, 'is beyond 2**53, where numbers are not exact: give it as a string')
        .with.nested.property('fields.length', 1);
      expect(() => read(text), text).to.throw(`  ${field}: `);
    }
    const both = `num_samples: 10\nrow: ${large}`;
    expect(() => read(both)).to.throw('2 fault(s)');
    expect(read(row('[9007199254740992, -9007199254740992, 1e300, 0000000000000000007]'))).to.deep.equal([
      2 ** 53,
      -(2 ** 53),
      1e300,
      7,
    ]);
    expect(read(row(`"${large}"`))).to.equal(`${large}`);
  });

  it('tell texts that no message carries, by their places, and levels without an end', () => {
    const halves = 'gateway: {nodes: [{id: "\\ud800"}, {id: "\\ud83d\\ude00", "\\udc00": 1}]}';
    expect(faultsOf(halves)).to.deep.include.members([
      { field: 'gateway.nodes[0].id', description: 'must be text: half a surrogate pair is none' },
      { field: 'gateway.nodes[1].\ufffd', description: 'must be text: half a surrogate pair is none' },
    ]);
    const [fault] = faultsOf(`num_samples: ${'['.repeat(20_000)}`);
    expect(fault?.description).to.equal('there are too many levels of mappings and lists');
  });

  it('end a file that has no end', () => {
    expect(() => readText('/dev/zero', 'INVALID_TASK')).to.throw(/\(file\): is larger than \d+ bytes/);
  });

  it('name the line that is not in UTF-8', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-faults-'));
    const file = join(folder, 'a.yaml');
    const read = (bytes: Buffer): string => {
      writeFileSync(file, bytes);
      return readText(file, 'INVALID_TASK');
    };
    expect(read(Buffer.from('\ufeffcaf\u00e9'))).to.equal('caf\u00e9');
    expect(() => read(Buffer.from('a: 1\nb: caf\u00e9\n', 'latin1'))).to.throw('line 2 is not in UTF-8');
    rmSync(folder, { recursive: true });
  });
});
