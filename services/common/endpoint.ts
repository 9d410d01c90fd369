// Where the model of a session is called, as harnesses are told it.

export interface Endpoint {
  /** Of the LLM proxy, as seen from where the harness is. */
  readonly proxyUrl: string;
  /** The session's credential. */
  readonly capability: string;
}

export interface EndpointOfSession extends Endpoint {
  readonly sessionId: string;
  readonly taskId: string;
}

/** Base URL of the session without a dialect's version, for clients that add it themselves. */
export const sessionUrl = ({ proxyUrl, capability }: Endpoint): string => `${proxyUrl}/s/${capability}`;

/** The same with `/v1`, as OpenAI's clients want it. */
export const openaiUrl = (at: Endpoint): string => `${sessionUrl(at)}/v1`;

/** Variables by which clients of every dialect find it. */
export function endpointEnv(at: EndpointOfSession): Record<string, string> {
  return {
    OPENAI_BASE_URL: openaiUrl(at),
    OPENAI_API_KEY: at.capability,
    ANTHROPIC_BASE_URL: sessionUrl(at),
    ANTHROPIC_API_KEY: at.capability,
    GOOGLE_GEMINI_BASE_URL: sessionUrl(at),
    GEMINI_API_KEY: at.capability,
    SESSION_ID: at.sessionId,
    TASK_ID: at.taskId,
  };
}
