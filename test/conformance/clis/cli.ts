// What the conformance run has to know about a CLI. One file each; nothing of a CLI is anywhere else.
import { existsSync } from 'node:fs';
import type { HarnessPackage } from '../../../services/harness-executor/adapters/adapter.ts';
import type { CaseName, Expected } from '../cases/case.ts';

export const HOME = '/polar/session/home';
export const WORKSPACE = '/polar/session/workspace';
/** What every CLI is told of the model. */
export const MODEL = 'policy';
export const CONTEXT_TOKENS = 60_000;
export const REPLY_TOKENS_MAX = 8_192;

/** A Python that sandboxes see, in the order of their PATH. */
export const SANDBOX_PYTHON =
  ['/usr/local/bin/python3', '/usr/bin/python3'].find((path) => existsSync(path)) ?? 'python3';

/** Packages from PyPI, all of them listed with their versions in a file. */
export interface PythonPackage {
  readonly name: string;
  readonly version: string;
  readonly requirements: string;
  /** The file that proves that it is whole. */
  readonly entry: string;
}

/** One command to a CLI. */
export interface Ask {
  readonly prompt: string;
  /** Go on with the session of the command before. */
  readonly resume: boolean;
  /** Of the session at the proxy, without `/v1`. */
  readonly url: string;
  readonly capability: string;
  readonly case: CaseName;
}

export interface CliCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** A call of the script, as the scripted engine reads it. */
export type ScriptedCall = Readonly<Record<string, unknown>>;

export interface Cli {
  readonly name: string;
  readonly version: string;
  readonly dialect: string;
  readonly install: { readonly npm: HarnessPackage } | { readonly python: PythonPackage };
  /** Files below HOME. */
  files(ask: Ask): Readonly<Record<string, string>>;
  /** `program` is the mounted entry. */
  command(ask: Ask, program: string): CliCommand;
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
