// Messages of the mesh in their JSON form, as far as views read them. 64-bit numbers are texts, and what is zero, false or
// empty is left out.

export interface Task {
  readonly taskId: string;
  readonly harness?: string;
  readonly createTime?: string;
  readonly endTime?: string;
  readonly sessionsByState?: Counts;
  readonly sessionsByOutcome?: Counts;
  readonly meanReward?: number;
  readonly spec?: { readonly instruction?: string; readonly queue?: string; readonly [key: string]: unknown };
}

export type Counts = Readonly<Record<string, number>>;

export interface Session {
  readonly sessionId: string;
  readonly taskId: string;
  readonly sampleIndex?: number;
  readonly state: string;
  readonly outcome?: string;
  readonly attempt?: number;
  readonly nodeId?: string;
  readonly harness?: string;
  readonly failure?: Failure;
  readonly reward?: number;
  readonly stats?: Stats;
  readonly times?: StageTimes;
  readonly attempts?: readonly Attempt[];
  readonly createTime?: string;
  readonly endTime?: string;
}

export interface Failure {
  readonly boundary?: string;
  readonly reason: string;
  readonly message?: string;
  readonly infrastructure?: boolean;
}

export interface Stats {
  readonly calls?: number;
  readonly traces?: number;
  readonly trainedTokens?: string;
  readonly maskedTokens?: Readonly<Record<string, string>>;
  readonly sampledTokens?: string;
  readonly contextTokens?: string;
  readonly usageMismatches?: number;
}

export type Stage = 'queue' | 'prepare' | 'ready' | 'run' | 'build' | 'evaluate';
export type StageTimes = { readonly [stage in `${Stage}Ms` | 'totalMs']?: string };

export interface Attempt {
  readonly attempt: number;
  readonly nodeId?: string;
  readonly failure?: Failure;
  readonly startTime?: string;
  readonly endTime?: string;
  readonly times?: StageTimes;
  readonly denied?: { readonly count?: number; readonly targets?: readonly string[] };
}

export interface Waiting {
  readonly reason: string;
  readonly message?: string;
}

export interface Node {
  readonly nodeId: string;
  readonly healthy?: boolean;
  readonly draining?: boolean;
  readonly failures?: { readonly count?: number; readonly reason?: string };
  readonly backends?: readonly string[];
  readonly prepareSlots?: number;
  readonly runSlots?: number;
  readonly evaluateSlots?: number;
  readonly preparing?: number;
  readonly ready?: number;
  readonly running?: number;
  readonly finishing?: number;
  readonly open?: number;
  readonly heartbeatTime?: string;
}

export interface Queue {
  readonly name: string;
  readonly weight?: number;
  readonly maxRunning?: number;
  readonly waiting?: number;
  readonly running?: number;
  readonly runSeconds?: number;
}

/** An engine, and the node whose LLM proxy tells of it. */
export interface Engine {
  readonly nodeId: string;
  readonly kind?: string;
  readonly baseUrl?: string;
  readonly model?: string;
  readonly pool?: string;
  readonly healthy?: boolean;
  readonly draining?: boolean;
  readonly problem?: string;
  readonly callsInFlight?: number;
  readonly callsInFlightMax?: number;
  readonly sessions?: number;
}

/** What an evaluator told beside the reward, by name. */
export type Evaluation = Readonly<Record<string, unknown>>;

/** What was said in a model call: a line of `ExportSession` with MESSAGES. */
export interface Call {
  readonly call_id: string;
  readonly finish_reason?: string;
  readonly role?: string;
  readonly trainable?: boolean;
  readonly policy_version?: number;
  readonly messages?: readonly (Message | null)[];
  readonly reply?: Message | null;
}

/** What a call was, took and counted: docs/export-format.md. */
export interface Summary {
  readonly call_id: string;
  readonly error_reason?: string;
  readonly prompt_tokens: number;
  readonly sampled_tokens: number;
  readonly start_ms: number;
  readonly queue_ms: number;
  readonly first_token_ms: number;
  readonly total_ms: number;
}

export interface Message {
  readonly role?: string;
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
  readonly tool_calls?: unknown;
}

/** Output of a harness as far as it is shown. */
export interface Output {
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes before what is shown. */
  readonly skipped: { readonly stdout: number; readonly stderr: number };
  readonly attempt: number;
  readonly running: boolean;
  readonly exitCode: number;
}
