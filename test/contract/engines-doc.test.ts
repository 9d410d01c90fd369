// The table of engines in docs/dialects.md is that of the code. POLAR_DOCS=write writes it anew.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { expect } from 'chai';
import { ENGINE_FEATURES, type EngineFeatures } from '../../services/llm-proxy/domain/engine-features.ts';
import { ADAPTERS } from '../../services/llm-proxy/engines/adapters.ts';

const FILE = new URL('../../docs/dialects.md', import.meta.url);
const TABLE = /(?<=<!-- engines -->\n)[\s\S]*?(?=<!-- end engines -->)/;

const WORDS: { readonly [Key in keyof EngineFeatures]: string } = {
  wholeIds: 'sampled ids in whole replies',
  streamedIds: 'sampled ids in streams',
  promptIds: 'ids of the prompt',
  logprobMode: 'logprobs',
  severalChoices: '`n` above 1',
  toolByName: 'a tool chosen by its name',
  tokenizePath: 'tokenizes',
  tokenMode: 'token mode',
  weightVersions: 'replies that tell the version of the weights',
  routedExperts: 'routed experts',
  pausePath: 'pauses for a change of weights',
};

const cell = (value: boolean | string): string => {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (value === '') return 'no';
  return value.startsWith('/') ? value.replace(/^\S+/, '`$&`') : value.replaceAll('_', ' ');
};

function tableOf(): string {
  const kinds = Object.keys(ENGINE_FEATURES) as (keyof typeof ENGINE_FEATURES)[];
  const rows = Object.entries(WORDS).map(([key, words]) => {
    const cells = kinds.map((kind) => cell(ENGINE_FEATURES[kind][key as keyof EngineFeatures]));
    return `| ${[words, ...cells].join(' | ')} |\n`;
  });
  const heads = kinds.map((kind) => `\`${kind}\``);
  return [`| | ${heads.join(' | ')} |\n`, `|---|${'---|'.repeat(kinds.length)}\n`, ...rows].join('');
}

describe('engines in docs/dialects.md', () => {
  it('are those of the code', () => {
    const text = readFileSync(FILE, 'utf8');
    const made = text.replace(TABLE, tableOf);
    if (process.env['POLAR_DOCS'] === 'write') writeFileSync(FILE, made);
    else expect(text).to.equal(made);
    expect(text).to.match(TABLE);
  });

  it('have adapters that say the same', () => {
    for (const [kind, adapter] of Object.entries(ADAPTERS)) {
      expect(adapter).to.include({ kind, features: ENGINE_FEATURES[adapter.kind] });
    }
  });
});
