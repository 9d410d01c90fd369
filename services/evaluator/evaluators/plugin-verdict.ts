// What an evaluator plug-in gives: the session's reward, rewards of some calls, and what is told beside.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { PolarError } from '../../common/errors.ts';
import { isWithin } from '../../common/json-values.ts';
import { FREE_FORM_LEVELS_MAX } from '../../common/specs/spec-values.ts';
import type { CallReward } from './evaluator.ts';
import { checkedRewards } from './printed-rewards.ts';

/** Of what it gives, as JSON. */
const GIVEN_CHARS_MAX = 1024 * 1024;
const REASON = 'EVALUATOR_PLUGIN_FAILED';

export interface PluginVerdict {
  readonly reward: number;
  readonly told: JsonObject;
  readonly traceRewards: CallReward[];
}

/** `json`: of JSON.stringify, to which a number that is none is null. Throws EVALUATOR_PLUGIN_FAILED. */
export function pluginVerdict(json: string, callIds: ReadonlySet<string>, what: string): PluginVerdict {
  const fail = (why: string): PolarError => new PolarError(REASON, `${what} ${why}`);
  if (json.length > GIVEN_CHARS_MAX) throw fail(`has ${json.length} characters, above ${GIVEN_CHARS_MAX}`);
  const given = JSON.parse(json) as JsonValue;
  if (!isObject(given)) throw fail('is no object');
  const { told = {}, ...rest } = given;
  const { reward, traceRewards } = checkedRewards(rest, callIds, what, REASON);
  if (reward === undefined) throw fail('has no reward');
  if (!isObject(told)) throw fail('has a told that is no object');
  if (!isWithin(told, FREE_FORM_LEVELS_MAX)) {
    throw fail(`has a told of more than ${FREE_FORM_LEVELS_MAX} levels of objects and lists`);
  }
  if (!isText(told)) throw fail('has keys in told that are no text');
  return { reward, told: wellFormed(told) as JsonObject, traceRewards };
}

const isObject = (value: JsonValue): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Once it is known how deep it is. */
function wellFormed(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(wellFormed);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, wellFormed(inner)]));
}

/** Half a surrogate pair is none. */
function isText(value: JsonValue): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, inner]) => key.isWellFormed() && isText(inner));
}
