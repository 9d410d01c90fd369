// polar audit SESSION|TASK, polar audit --harnesses
import { readFileSync } from 'node:fs';
import { EXIT } from '../../../services/common/exit-codes.ts';
import {
  type Arguments,
  type Command,
  TRAJECTORY_FLAGS,
  textFlag,
  URL_FLAGS,
  UsageError,
} from '../arguments.ts';
import { type HarnessRow, harnessRows, spanMs } from '../audit/harnesses.ts';
import {
  auditNotes,
  auditTable,
  findingLines,
  harnessTable,
  notScoredLines,
  rescoreTable,
} from '../audit/report.ts';
import { Rescoring } from '../audit/rescore.ts';
import { type Engine, SCORING_KINDS, type ScoringKind, scoringAt } from '../audit/scoring.ts';
import { endedSince, sessionsOf } from '../audit/selection.ts';
import { type AuditedSession, auditSession } from '../audit/session.ts';
import { inherited } from '../config.ts';
import { at, meshTopologyOf, rolloutUrl, trajectoryClient, trajectoryUrl } from '../mesh-clients.ts';
import { pacedProgress, say, sayJson } from '../output/say.ts';

export const audit: Command = {
  name: 'audit',
  summary: 'check that every sampled token of sessions is trained, or masked with a reason',
  operands: ['[TASK-OR-SESSION]'],
  flags: {
    ...URL_FLAGS,
    ...TRAJECTORY_FLAGS,
    rescore: { type: 'boolean', help: 'have an engine score the traces again, and show how logprobs differ' },
    engine: { type: 'string', value: 'URL', help: "that engine; default: the topology file's first one" },
    'engine-kind': { type: 'string', value: 'KIND', help: `its kind: ${SCORING_KINDS.join(', ')}` },
    tolerance: {
      type: 'string',
      value: 'NATS',
      help: 'a larger difference is a finding; default: none is',
    },
    harnesses: { type: 'boolean', help: 'show which part of the sampled tokens is delivered, by harness' },
    since: {
      type: 'string',
      value: 'SPAN',
      help: 'of sessions that ended since then: 90m, 24h (default), 7d',
    },
  },
  examples: [
    'polar audit calculator',
    'polar audit s0123456789ab-0 --rescore --engine http://127.0.0.1:8000 --engine-kind vllm',
    'polar audit --harnesses --since 24h --json',
  ],
  async run(args) {
    const [id] = args.operands;
    if ((id === undefined) !== (args.flags['harnesses'] === true)) {
      throw new UsageError('one of TASK-OR-SESSION and --harnesses is needed');
    }
    const isRescored = args.flags['rescore'] === true;
    const stray = isRescored ? undefined : OF_RESCORE.find((name) => textFlag(args, name) !== undefined);
    if (stray !== undefined) throw new UsageError(`--${stray} is for --rescore`);
    if (id === undefined) return await showHarnesses(args);
    if (textFlag(args, 'since') !== undefined) throw new UsageError('--since is for --harnesses');
    return await auditAll(args, id);
  },
};

const OF_RESCORE = ['engine', 'engine-kind', 'tolerance'] as const;

async function auditAll(args: Arguments, id: string): Promise<number> {
  const json = args.flags['json'] === true;
  const tolerance = numberFlag(args, 'tolerance');
  const rescoring = args.flags['rescore'] === true ? new Rescoring(scoringAt(engineOf(args))) : undefined;
  const url = trajectoryUrl(args);
  const sessions = await at(rolloutUrl(args), sessionsOf(rolloutUrl(args), id));
  const accounts: AuditedSession[] = [];
  const tell = pacedProgress();
  for (const session of sessions) {
    const audited = auditSession(trajectoryClient(url), session);
    const { account, traces, origins } = await at(url, audited, '--trajectory-url');
    await rescoring?.add(session.sessionId, traces, origins);
    accounts.push(account);
    if (json) sayJson(account);
    else tell(`${accounts.length} of ${sessions.length} sessions`);
  }
  if (!json) showAccounts(accounts);
  if (rescoring !== undefined) showRescored(rescoring, json);
  const clean = accounts.every(({ findings }) => findings.length === 0);
  const scored = rescoring === undefined || isWithin(rescoring, tolerance ?? Number.POSITIVE_INFINITY);
  return clean && scored ? EXIT.ok : EXIT.failed;
}

function showAccounts(accounts: readonly AuditedSession[]): void {
  say(auditTable(accounts));
  for (const line of [...auditNotes(accounts), ...accounts.flatMap(findingLines)]) say(line);
  const findings = accounts.reduce((sum, one) => sum + one.findings.length + one.findings_more, 0);
  say(findings === 0 ? 'every sampled token is accounted for' : `${findings} findings`);
}

const isWithin = (rescoring: Rescoring, tolerance: number): boolean =>
  rescoring.notScored.length === 0 && rescoring.rows().every(({ max }) => max <= tolerance);

function showRescored(rescoring: Rescoring, json: boolean): void {
  const { notComparable, notScored } = rescoring;
  if (json) {
    sayJson({ rescored: rescoring.rows(), not_comparable: notComparable, not_scored: notScored });
    return;
  }
  say('\ndifferences of logprobs, recorded and scored again, in nats');
  say(rescoreTable(rescoring.rows()));
  if (notComparable > 0) {
    say(`${notComparable} ids are not compared: their logprobs are those after a temperature or a bias`);
  }
  for (const line of notScoredLines(notScored)) say(line);
}

/** The one that is named, or the first one of the topology with its key. */
function engineOf(args: Arguments): Engine {
  const [url, kind] = [textFlag(args, 'engine'), textFlag(args, 'engine-kind')];
  if (url !== undefined && kind === undefined) throw new UsageError('--engine needs --engine-kind');
  const inference = meshTopologyOf(args).gateway.nodes[0]?.inference;
  const chosen = kind ?? inference?.engine ?? '';
  if (!(SCORING_KINDS as readonly string[]).includes(chosen)) {
    throw new UsageError(`--engine-kind must be one of ${SCORING_KINDS.join(', ')}: ${chosen} scores no ids`);
  }
  const own = inference?.servers[0] ?? inference?.base_url ?? '';
  const address = (url ?? own).replace(/\/+$/, '');
  // The topology's key goes to the topology's engine only.
  const key = address === own ? keyOf(inference ?? {}) : undefined;
  return { url: address, kind: chosen as ScoringKind, key };
}

function keyOf({ api_key_env: name, api_key_file: file }: KeyPlace): string | undefined {
  if (name !== undefined) return inherited[name];
  return file === undefined ? undefined : readFileSync(file, 'utf8').trim();
}

interface KeyPlace {
  readonly api_key_env?: string | undefined;
  readonly api_key_file?: string | undefined;
}

function numberFlag(args: Arguments, name: string): number | undefined {
  const text = textFlag(args, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0)) throw new UsageError(`--${name} must be a number from 0`);
  return value;
}

async function showHarnesses(args: Arguments): Promise<number> {
  const span = spanMs(textFlag(args, 'since') ?? '24h');
  if (span === undefined) throw new UsageError('--since must be like 90m, 24h or 7d');
  const url = rolloutUrl(args);
  const rows = harnessRows(await at(url, endedSince(url, Date.now() - span)));
  if (args.flags['json'] === true) for (const row of rows) sayJson(row satisfies HarnessRow);
  else say(harnessTable(rows));
  return EXIT.ok;
}
