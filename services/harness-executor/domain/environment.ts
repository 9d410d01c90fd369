// What every harness finds in its environment, and who may overrule it.
import { type EndpointOfSession, endpointEnv } from '../../common/endpoint.ts';
import { COMMAND_LINE_BYTES_MAX } from '../../common/limits.ts';

export const SESSION_DIR = '/polar/session';
export const INSTRUCTION_FILE = `${SESSION_DIR}/instruction.md`;

export interface SessionSite extends EndpointOfSession {
  readonly instruction: string;
}

/** Variables for every harness. POLAR_INSTRUCTION is left out where it is too long for one; the file always holds it. */
export function injectedEnv(site: SessionSite): Record<string, string> {
  const short = Buffer.byteLength(site.instruction) <= COMMAND_LINE_BYTES_MAX;
  return {
    ...endpointEnv(site),
    SESSION_DIR,
    ARTIFACTS_DIR: `${SESSION_DIR}/artifacts`,
    LOGS_DIR: `${SESSION_DIR}/logs`,
    AGENT_LOG_DIR: `${SESSION_DIR}/logs/agent`,
    POLAR_INSTRUCTION_FILE: INSTRUCTION_FILE,
    ...(short && { POLAR_INSTRUCTION: site.instruction }),
  };
}
