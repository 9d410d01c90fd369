import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { HarnessSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { AttemptRefSchema, RunWorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { adapterFor } from '../adapters/index.ts';
import { type Launch, launchOf } from './launch.ts';

const ref = create(AttemptRefSchema, { sessionId: 's', attempt: 1, taskId: 't' });
const harness = create(HarnessSpecSchema, {
  name: 'shell',
  command: { command: 'true', env: { D: 'command' } },
  env: { C: 'harness', D: 'harness' },
});

async function commandOf(proxyUrl: string, runtime?: Record<string, string>): Promise<Launch['command']> {
  const asked = runtime && { proxyUrl: 'http://asked:1', env: runtime };
  return launchOf(await adapterFor(harness, undefined), {
    ...{ ref, capability: 'c', installed: undefined, nodeDir: '/node', python: '', runtime: asked },
    work: create(RunWorkSchema, { proxyUrl, harness }),
  }).command;
}

describe('the launch of a harness', () => {
  it('leaves what gives way to the sandbox to its manager', async () => {
    const { env, defaultEnv } = await commandOf('http://told:1');
    expect(env).to.deep.equal({ C: 'harness', D: 'command' });
    expect(defaultEnv).to.include({ OPENAI_BASE_URL: 'http://told:1/s/c/v1', SESSION_ID: 's' });
  });

  it('puts it in order itself where the manager may be too old for that', async () => {
    const { env } = await commandOf('', { SESSION_ID: 'runtime', C: 'runtime', B: 'runtime' });
    const expected = { SESSION_ID: 'runtime', B: 'runtime', C: 'harness', D: 'command', TASK_ID: 't' };
    expect(env).to.include({ ...expected, OPENAI_BASE_URL: 'http://asked:1/s/c/v1' });
  });
});
