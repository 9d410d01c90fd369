// The body of a chat call to an engine in text mode.
import type { Sampling } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { countOf, isObject, type JsonObject, type JsonValue } from './json.ts';
import { overrideSampling } from './sampling.ts';

/** What is asked for, as far as an engine is concerned. */
export interface ChatOrder {
  readonly messages: readonly JsonValue[];
  /** Each by `forTemplate`; unset: that is still to be done. */
  readonly templated?: readonly JsonValue[];
  readonly tools: readonly JsonValue[];
  readonly fields: JsonObject;
  readonly stream: boolean;
  readonly n: number;
  /** The harness is shown the logprobs; unset: it is not. */
  readonly showsLogprobs?: boolean;
}

/** Served model, the task's sampling, the fields that bring the ids. `idFields` are the engine's. */
export function engineBody(
  order: ChatOrder,
  model: string,
  idFields: JsonObject,
  sampling: Sampling | undefined,
): JsonObject {
  const body: JsonObject = { ...order.fields };
  overrideSampling(body, sampling);
  // More logprobs than the proxy needs, where the harness wants to see them.
  const { top_logprobs: top } = order.fields;
  if (order.showsLogprobs === true) body['logprobs'] = true;
  Object.assign(body, idFields, typeof top === 'number' ? { top_logprobs: most(top, idFields) } : {});
  body['model'] = model;
  body['messages'] = [...(order.templated ?? order.messages.map(forTemplate))];
  if (order.tools.length > 0) body['tools'] = [...order.tools];
  if (order.n > 1) body['n'] = order.n;
  body['stream'] = order.stream;
  if (order.stream) body['stream_options'] = { include_usage: true };
  return body;
}

const most = (top: number, { top_logprobs: own }: JsonObject): number => Math.max(top, countOf(own));

/** Chat templates know no developer. */
export function forTemplate(message: JsonValue): JsonValue {
  if (!isObject(message) || message['role'] !== 'developer') return message;
  return { ...message, role: 'system' };
}
