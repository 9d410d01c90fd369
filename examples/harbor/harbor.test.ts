import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { durationMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { readTaskFile } from '../../services/common/specs/task-file.ts';

const HERE = import.meta.dirname;
const read = (name: string): string => readFileSync(join(HERE, name), 'utf8');

describe('the Harbor example', () => {
  const spec = readTaskFile(join(HERE, 'task.yaml'));

  it('says what the files of the Harbor task say', () => {
    expect(spec.instruction).to.equal(read('greeting/instruction.md').trim());
    const toml = read('greeting/task.toml');
    const under = (part: string): string =>
      toml.split(`[${part}]`)[1]?.split('\n[', 1)[0] ?? expect.fail(part);
    expect(under('agent')).to.contain(`timeout_sec = ${durationMs(spec.budgets!.run!) / 1000}.0`);
    const { verifier_timeout: seconds } = spec.evaluator?.config ?? {};
    expect(under('verifier')).to.contain(`timeout_sec = ${seconds}.0`);
    expect(under('verifier.env')).to.contain(`WORDS_MAX = "${spec.evaluator?.env['WORDS_MAX']}"`);
    expect(read('greeting/environment/Dockerfile')).to.contain(`WORKDIR ${spec.runtime?.workdir}`);
  });

  it('sends its tests and its agent, and not its solution', () => {
    expect(spec.evaluator?.files.map(({ target }) => target)).to.deep.equal(['test.sh']);
    const [step] = spec.runtime?.prepare.map((one) => one.step) ?? [];
    const content = step?.case === 'uploadFile' ? Buffer.from(step.value.content).toString() : '';
    expect(content).to.equal(read('agent.sh'));
  });
});
