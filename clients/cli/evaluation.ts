// Why a session has its reward: what its evaluator told beside it, which the reconstructor has.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { asPolarError } from '../../services/common/errors.ts';
import { trajectoryClient } from './mesh-clients.ts';
import { progress } from './output/say.ts';

/** The reconstructor is not waited for longer. */
const ASK_MS = 5_000;
/** Of a text of many lines: its end, where test programs sum up. */
const LINES_MAX = 40;
const CHARS_MAX = 8_000;
/** Of anything else. */
const VALUE_CHARS_MAX = 1_000;

/** Undefined where there is none, or it cannot be had, which is told and is no failure. */
export async function evaluationOf(
  url: string,
  { sessionId, reward }: Session,
): Promise<JsonObject | undefined> {
  if (reward === undefined) return undefined;
  try {
    const request = { sessionId, summary: true };
    const { trajectory } = await trajectoryClient(url).getTrajectory(request, { timeoutMs: ASK_MS });
    return trajectory?.evaluation;
  } catch (error) {
    const { message } = asPolarError(error);
    const why = message.replace(/\s*\n\s*/g, ' ');
    progress(`the evaluation of ${sessionId} is not told by ${url} (--trajectory-url): ${why}`);
    return undefined;
  }
}

/** A line for each value, and the end of each text of several lines below its name. */
export const evaluationLines = (evaluation: JsonObject): string[] => [
  'evaluation:',
  ...Object.entries(evaluation).flatMap(([name, value]) => linesOf(name, value)),
];

function linesOf(name: string, value: JsonValue): string[] {
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value);
  if (!text.includes('\n')) return [`  ${name}: ${shortened(text)}`];
  const all = text.split('\n');
  const shown = text.slice(-CHARS_MAX).split('\n').slice(-LINES_MAX);
  const left = all.length - shown.length;
  const rest = left === 0 ? '' : ` (the last ${shown.length} lines; all: --json)`;
  return [`  ${name}:${rest}`, ...shown.map((line) => `  | ${line}`)];
}

const shortened = (text: string): string =>
  text.length <= VALUE_CHARS_MAX ? text : `${text.slice(0, VALUE_CHARS_MAX)} … (all: --json)`;
