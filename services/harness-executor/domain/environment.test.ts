import { expect } from 'chai';
import { COMMAND_LINE_BYTES_MAX } from '../../common/limits.ts';
import { injectedEnv } from './environment.ts';

const site = {
  proxyUrl: 'http://127.0.0.1:4141',
  capability: 'secret',
  sessionId: 'p-0',
  taskId: 'calculator',
  instruction: 'do it',
};

describe('the environment of a harness', () => {
  it('points every provider variable at the session', () => {
    const env = injectedEnv(site);
    expect(env).to.include({
      OPENAI_BASE_URL: 'http://127.0.0.1:4141/s/secret/v1',
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:4141/s/secret',
      GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:4141/s/secret',
    });
    for (const key of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY']) {
      expect(env[key]).to.equal('secret');
    }
  });

  it('names the session, its folders and its instruction', () => {
    expect(injectedEnv(site)).to.include({
      SESSION_ID: 'p-0',
      TASK_ID: 'calculator',
      SESSION_DIR: '/polar/session',
      ARTIFACTS_DIR: '/polar/session/artifacts',
      LOGS_DIR: '/polar/session/logs',
      AGENT_LOG_DIR: '/polar/session/logs/agent',
      POLAR_INSTRUCTION: 'do it',
      POLAR_INSTRUCTION_FILE: '/polar/session/instruction.md',
    });
  });

  it('leaves an instruction that no variable can hold to the file', () => {
    const long = injectedEnv({ ...site, instruction: 'ü'.repeat(COMMAND_LINE_BYTES_MAX / 2) });
    expect(long).to.have.property('POLAR_INSTRUCTION');
    const longer = injectedEnv({ ...site, instruction: 'ü'.repeat(COMMAND_LINE_BYTES_MAX / 2 + 1) });
    expect(longer).not.to.have.property('POLAR_INSTRUCTION');
  });
});
