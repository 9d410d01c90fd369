// What the conformance run has to know about a CLI beside what its adapter knows. One file each.
import type { JsonObject } from '@bufbuild/protobuf';
import type { Adapter, HarnessFile } from '../../../services/harness-executor/adapters/adapter.ts';
import type { CaseName, Expected } from '../cases/case.ts';

export const WORKSPACE = '/polar/session/workspace';
/** What every CLI is told of the model. */
export const MODEL = 'policy';
export const CONTEXT_TOKENS = 60_000;
export const REPLY_TOKENS_MAX = 8_192;

/** A call of the script, as the scripted engine reads it. */
export type ScriptedCall = Readonly<Record<string, unknown>>;

export interface Cli {
  readonly name: string;
  /** How the mesh runs it. */
  readonly adapter: Adapter;
  readonly version: string;
  readonly dialect: string;
  /** As in a task. */
  settings?(one: CaseName): JsonObject;
  /** Beside the adapter's own. */
  readonly files?: readonly HarnessFile[];
  /** Its arguments, where it goes on with the session of the command before. */
  resumed(argv: readonly string[]): readonly string[];
  /** Calls that end a task, where text alone does not. */
  readonly farewell?: readonly ScriptedCall[];
  /** It asks for whole replies: one that breaks is asked for again by the proxy, unseen. */
  readonly whole?: true;
  /** Prompt tokens, as told by the engine, at which it makes a summary, and which it still dares to send. */
  readonly compactsAt?: number;
  /** What it says, as a regular expression, around a summary, where nothing else tells which case it is. */
  readonly aroundSummary?: string;
  /** What it says, as a regular expression, to go on behind a text that broke off. */
  readonly resumption?: string;
  /** The call that starts a sub-agent, where the CLI has them. */
  subAgent?(prompt: string): ScriptedCall;
  /** The call that ends a sub-agent, where text does not. */
  readonly subAgentEnd?: ScriptedCall;
  /** The call that waits for its end, where the first does not. */
  readonly waitForSubAgent?: ScriptedCall;
  /** Cases that this CLI cannot do, with the reason. */
  readonly cannot: Partial<Record<CaseName, string>>;
  /** Cases that end otherwise than most, with the reason. */
  readonly unlike: Partial<Record<CaseName, Unlike>>;
}

export interface Unlike extends Partial<Expected> {
  readonly why: string;
}

/** What a CLI has of its adapter. */
export const of = (adapter: Adapter): Pick<Cli, 'adapter' | 'version' | 'dialect'> => ({
  adapter,
  version: adapter.version,
  dialect: adapter.dialect,
});
