// A JSON body with ids that are text already: those of a long history are not written out again at each turn.
import type { JsonObject } from '../../domain/json.ts';
import type { TokenPrompt } from '../../engines/token-call.ts';

/** In pieces. */
export function withIds(key: string, { text }: TokenPrompt, body: JsonObject): readonly Buffer[] {
  const rest = JSON.stringify(body).slice(1);
  const end = `]${rest === '}' ? '' : ','}${rest}`;
  return [Buffer.from(`{${JSON.stringify(key)}:[`), ...text, Buffer.from(end)];
}
