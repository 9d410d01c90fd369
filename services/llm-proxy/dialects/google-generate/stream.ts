// The google-generate dialect: a reply in pieces. Text comes as it is sampled; calls, which the API knows as objects only,
// come whole when their candidate has ended.
import type { PolarError } from '../../../common/errors.ts';
import { arrayOf, countOf, isObject, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import { eventOf, lineOf } from '../../domain/sse.ts';
import { statusOf } from '../../http/status.ts';
import type { StreamWriter } from '../dialect.ts';
import { reasoningIn, textIn } from '../said.ts';
import { callId, closing, endingOf, responseIdOf, type ToldCall, usageOf, type View } from './candidate.ts';
import { errorBody } from './errors.ts';

/** A candidate so far. */
interface Progress {
  reasoning: string;
  readonly calls: Map<number, ToldCall>;
  finish: string | undefined;
}

export class ContentStream implements StreamWriter {
  readonly contentType: string;
  readonly #view: View;
  /** By the index of the choice. */
  readonly #candidates = new Map<number, Progress>();
  #responseId: string | undefined;
  #usage: JsonObject = {};
  #begun = false;

  constructor(view: View) {
    this.#view = view;
    this.contentType = view.events ? 'text/event-stream; charset=utf-8' : 'application/json; charset=utf-8';
  }

  /** White space in either form: Google's client of Gemini CLI takes no comments in a stream of events. */
  keepAlive(): string {
    return '\n';
  }

  chunk(chunk: JsonObject): string {
    this.#responseId ??= responseIdOf(chunk);
    if (isObject(chunk['usage'])) this.#usage = chunk['usage'];
    const candidates = arrayOf(chunk['choices'])
      .filter(isObject)
      .flatMap((choice) => this.#piece(choice));
    return candidates.length === 0 ? '' : this.#framed(this.#response(candidates));
  }

  end(): string {
    if (this.#candidates.size === 0) this.#progress(0);
    const candidates = [...this.#candidates]
      .sort(([one], [other]) => one - other)
      .map(([index, { finish, reasoning, calls }]) => {
        const { parts, said } = endingOf(finish, reasoning, [...calls.values()]);
        return { ...closing(parts, said), index };
      });
    const last = { ...this.#response(candidates), usageMetadata: usageOf(this.#usage) };
    return this.#framed(last) + (this.#view.events ? '' : ']');
  }

  failed(error: PolarError): string {
    return this.#framed(errorBody(error, statusOf(error))) + (this.#view.events ? '' : ']');
  }

  #piece(choice: JsonObject): JsonObject[] {
    const index = countOf(choice['index']);
    const progress = this.#progress(index);
    const delta = objectOf(choice['delta']);
    progress.finish ??= textOf(choice['finish_reason']);
    for (const call of arrayOf(delta['tool_calls'])) this.#call(progress, objectOf(call));
    const parts: JsonObject[] = [];
    const reasoning = reasoningIn(delta);
    progress.reasoning += reasoning;
    if (reasoning !== '' && this.#view.showsThoughts) parts.push({ text: reasoning, thought: true });
    const text = textIn(delta);
    if (text !== undefined) parts.push({ text });
    return parts.length === 0 ? [] : [{ content: { role: 'model', parts }, index }];
  }

  #progress(index: number): Progress {
    const known = this.#candidates.get(index) ?? { reasoning: '', calls: new Map(), finish: undefined };
    this.#candidates.set(index, known);
    return known;
  }

  #call({ calls }: Progress, delta: JsonObject): void {
    const index = countOf(delta['index']);
    const { name, arguments: args } = objectOf(delta['function']);
    const known = calls.get(index);
    const call = known ?? {
      id: callId(delta['id'], this.#responseId ?? '0', index),
      name: '',
      arguments: '',
    };
    calls.set(index, call);
    call.name += textOf(name) ?? '';
    call.arguments += textOf(args) ?? '';
  }

  #response(candidates: readonly JsonObject[]): JsonObject {
    return {
      candidates: [...candidates],
      modelVersion: this.#view.shown,
      responseId: this.#responseId ?? '0',
    };
  }

  #framed(response: JsonObject): string {
    const json = lineOf(response);
    if (this.#view.events) return eventOf(json);
    const before = this.#begun ? ',\n' : '[';
    this.#begun = true;
    return before + json;
  }
}
