// What the mesh can do, by name. Submit refuses other names; each service proves at start that it implements its list.

export const BACKENDS = ['bubblewrap', 'process'] as const;
export const HARNESSES = ['shell', 'pi'] as const;
export const BUILDERS = ['per_request', 'prefix_merging'] as const;
export const EVALUATORS = ['session_completed', 'test_on_output'] as const;

export type BackendName = (typeof BACKENDS)[number];
export type HarnessName = (typeof HARNESSES)[number];
export type BuilderName = (typeof BUILDERS)[number];
export type EvaluatorName = (typeof EVALUATORS)[number];

export const DEFAULT_WORKDIR = '/polar/session/workspace';

/** "shell, pi" */
export const listed = (names: readonly string[]): string => names.join(', ');
