// What an access token may be good for, and what each RPC asks of it.

export const SCOPES = ['submit', 'read', 'consume', 'operate', 'node'] as const;
export type Scope = (typeof SCOPES)[number];

/** By full name of the service. What is not here is open to all: health, reflection. */
export const SCOPE_OF_RPC: Readonly<Record<string, Readonly<Record<string, Scope>>>> = {
  'polar.scheduler.v1.RolloutService': {
    SubmitTask: 'submit',
    SubmitTasks: 'submit',
    CancelTask: 'submit',
    CancelSession: 'submit',
    RetrySessions: 'submit',
    OpenSession: 'submit',
    RenewSession: 'submit',
    CloseSession: 'submit',
    GetTask: 'read',
    ListTasks: 'read',
    GetSession: 'read',
    ListSessions: 'read',
    WatchTask: 'read',
    ListNodes: 'read',
    ListQueues: 'read',
    DrainNode: 'operate',
    GetTaskSpec: 'node',
  },
  'polar.reconstructor.v1.TrajectoryService': {
    StreamTrajectories: 'consume',
    AckTrajectories: 'consume',
    NackTrajectories: 'consume',
    SeekConsumer: 'consume',
    DeleteConsumer: 'consume',
    GetTrajectory: 'read',
    ExportSession: 'read',
    ListConsumers: 'read',
  },
  'polar.llm_proxy.v1.PolicyService': {
    PublishVersion: 'operate',
    Pause: 'operate',
    Resume: 'operate',
    GetPolicy: 'read',
  },
  'polar.llm_proxy.v1.ProxyService': {
    CloseSession: 'node',
    ListEngines: 'read',
    DrainEngine: 'operate',
  },
  'polar.harness_executor.v1.HarnessService': {
    ListHarnesses: 'read',
    GetSessionLogs: 'read',
    ListSessionArtifacts: 'read',
    GetSessionArtifact: 'read',
  },
  // It runs commands, as a task does.
  'polar.evaluator.v1.EvaluatorService': { ListEvaluators: 'read', EvaluateSession: 'submit' },
  'polar.runtime_prewarm.v1.RuntimeService': {
    AcquireRuntime: 'node',
    RenewLease: 'node',
    Exec: 'node',
    LimitExec: 'node',
    PutFiles: 'node',
    GetFile: 'node',
    ReleaseRuntime: 'node',
    ListRuntimes: 'read',
  },
};

export const isScope = (text: string): text is Scope => (SCOPES as readonly string[]).includes(text);
