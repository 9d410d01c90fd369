// What every harness in a sandbox finds in its environment, and who may overrule it.
import { type SessionSite, sessionEnv } from '../../common/endpoint.ts';

export const SESSION_DIR = '/polar/session';
export const INSTRUCTION_FILE = `${SESSION_DIR}/instruction.md`;

/** Variables for every harness. The file always holds the instruction. */
export const injectedEnv = (site: SessionSite): Record<string, string> => ({
  ...sessionEnv(site),
  SESSION_DIR,
  ARTIFACTS_DIR: `${SESSION_DIR}/artifacts`,
  LOGS_DIR: `${SESSION_DIR}/logs`,
  AGENT_LOG_DIR: `${SESSION_DIR}/logs/agent`,
  POLAR_INSTRUCTION_FILE: INSTRUCTION_FILE,
});
