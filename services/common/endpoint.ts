// Where the model of a session is called, as its harness is told it.
import { COMMAND_LINE_BYTES_MAX } from './limits.ts';

export interface Endpoint {
  /** Of the LLM proxy, as seen from where the harness is. */
  readonly proxyUrl: string;
  /** The session's credential. */
  readonly capability: string;
}

export interface SessionSite extends Endpoint {
  readonly sessionId: string;
  readonly taskId: string;
  readonly instruction: string;
}

/** Base URL of the session without a dialect's version, for clients that add it themselves. */
export const sessionUrl = ({ proxyUrl, capability }: Endpoint): string => `${proxyUrl}/s/${capability}`;

/** The same with `/v1`, as OpenAI's clients want it. */
export const openaiUrl = (at: Endpoint): string => `${sessionUrl(at)}/v1`;

/** Variables by which harnesses of every dialect find it. POLAR_INSTRUCTION is left out where it is too long for one. */
export function sessionEnv(site: SessionSite): Record<string, string> {
  const short = Buffer.byteLength(site.instruction) <= COMMAND_LINE_BYTES_MAX;
  return {
    OPENAI_BASE_URL: openaiUrl(site),
    OPENAI_API_KEY: site.capability,
    ANTHROPIC_BASE_URL: sessionUrl(site),
    ANTHROPIC_API_KEY: site.capability,
    GOOGLE_GEMINI_BASE_URL: sessionUrl(site),
    GEMINI_API_KEY: site.capability,
    SESSION_ID: site.sessionId,
    TASK_ID: site.taskId,
    ...(short && { POLAR_INSTRUCTION: site.instruction }),
  };
}
