// The openai-responses dialect: what a harness gets to see of a reply.
import type { PolarError } from '../../../common/errors.ts';
import { arrayOf, isObject, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import { isOverflow } from '../../domain/overflow.ts';
import { lineOf } from '../../domain/sse.ts';
import type { ReplyWriter, StreamWriter } from '../dialect.ts';
import { OVERFLOW_CODE, overflowMessage } from '../openai-chat/errors.ts';
import type { Event } from './output.ts';
import { ResponseBuilder, type Wants } from './response.ts';

/** `id`: by which the reply can be named later. */
export const responsesWriter = (wants: Wants, shown: string, id?: string): ReplyWriter => ({
  whole: (reply) => {
    const builder = new ResponseBuilder(wants, shown, id);
    builder.meet(reply);
    const choice = objectOf(arrayOf(reply['choices'])[0]);
    builder.add(objectOf(choice['message']));
    builder.end(textOf(choice['finish_reason']) ?? 'stop');
    return builder.response();
  },
  stream: () => new ResponsesStream(new ResponseBuilder(wants, shown, id)),
});

/** Calls are ended with the reply, so that no tool runs before the call is recorded. */
class ResponsesStream implements StreamWriter {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly #builder: ResponseBuilder;
  #next = 0;

  constructor(builder: ResponseBuilder) {
    this.#builder = builder;
  }

  keepAlive(): string {
    return ': keep-alive\n\n';
  }

  chunk(chunk: JsonObject): string {
    this.#builder.meet(chunk);
    const events = this.#begin();
    for (const choice of arrayOf(chunk['choices']).filter(isObject)) {
      events.push(...this.#builder.add(objectOf(choice['delta'])));
      const finish = textOf(choice['finish_reason']);
      if (finish !== undefined) events.push(...this.#builder.end(finish));
    }
    return this.#framed(events);
  }

  end(): string {
    const events = [...this.#begin(), ...this.#builder.end('stop')];
    const response = this.#builder.response();
    return this.#framed([...events, { type: `response.${String(response['status'])}`, response }]);
  }

  /** Both events, as OpenAI sends them: of the second alone OpenAI's clients make no error, and many frameworks a whole reply. */
  failed(error: PolarError): string {
    const [type, told] = isOverflow(error)
      ? ['invalid_request_error', { code: OVERFLOW_CODE, message: overflowMessage(error) }]
      : ['server_error', { code: 'server_error', message: error.message }];
    const response = this.#builder.response(told);
    const events = [
      { type: 'error', error: { type, ...told, param: null } },
      { type: 'response.failed', response },
    ];
    return this.#framed([...this.#begin(), ...events]);
  }

  #begin(): Event[] {
    if (this.#next > 0) return [];
    const response = this.#builder.response();
    return [
      { type: 'response.created', response },
      { type: 'response.in_progress', response },
    ];
  }

  #framed(events: readonly Event[]): string {
    return events.map((event) => this.#frame(event)).join('');
  }

  #frame({ type, ...rest }: Event): string {
    const data = lineOf({ type, sequence_number: this.#next++, ...rest });
    return `event: ${type}\ndata: ${data}\n\n`;
  }
}
