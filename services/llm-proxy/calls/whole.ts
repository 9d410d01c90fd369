// A call without a stream: the reply goes out when its record is durable.
import { PolarError } from '../../common/errors.ts';
import type { ReplyWriter } from '../dialects/dialect.ts';
import { arrayOf, countOf, isObject, type JsonObject, objectOf, textOf } from '../domain/json.ts';
import { finishReasonOf } from '../domain/reply.ts';
import type { PlacedCall } from '../engines/placed-call.ts';
import { type Choice, type Exchange, interrupted, requireIds } from './exchange.ts';

export async function wholeReply(exchange: Exchange): Promise<void> {
  const { call, writer, delivery } = exchange.parts;
  const { tried, reply, choices } = await exchange.ask(async (tried, signal) => {
    const reply = await tried.whole(signal);
    return { tried, reply, choices: choicesOf(tried, reply) };
  });
  const error = choices.some(({ finishReason }) => finishReason === 'abort') ? interrupted(tried) : undefined;
  const kept = error === undefined ? choices : choices.map((choice) => ({ ...choice, reply: undefined }));
  const recorded = exchange.record({ tried, choices: kept, usage: objectOf(reply['usage']), error });
  // Written while the record is on its way, so that nothing of the engine's reply need wait for it.
  const [text] = await Promise.all([written(writer, reply), recorded]);
  if (error !== undefined) throw error;
  call.signal.throwIfAborted();
  delivery.whole(text);
}

const written = async (writer: ReplyWriter, reply: JsonObject): Promise<string> =>
  JSON.stringify(writer.whole(reply));

function choicesOf(tried: PlacedCall, reply: JsonObject): Choice[] {
  const choices = arrayOf(reply['choices']).filter(isObject);
  if (choices.length === 0) throw broken(tried, 'no choice');
  const indexes = choices.map(({ index }) => countOf(index));
  requireIds(tried, indexes);
  // What was sampled is told by index, and so are records: two of one cannot be kept apart.
  if (new Set(indexes).size < indexes.length) throw broken(tried, 'several choices of one index');
  return choices.map((choice) => {
    const index = countOf(choice['index']);
    const finishReason = finishReasonOf(textOf(choice['finish_reason']) ?? 'stop');
    // A copy: the writer changes what it is given before the record is made of it.
    return { index, finishReason, reply: { ...objectOf(choice['message']) } };
  });
}

const broken = ({ engine }: PlacedCall, made: string): PolarError =>
  new PolarError('ENGINE_ERROR', `the engine at ${engine.name} made ${made}`);
