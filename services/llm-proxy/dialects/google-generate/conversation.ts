// The google-generate dialect: a conversation in the words of openai-chat, each content in its place.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { dataFault, imageFault } from '../images.ts';
import { openReasoning } from '../sealed-reasoning.ts';
import { camelCased } from './names.ts';
import { PART_RULES } from './rules.ts';

interface MadeCall {
  readonly id: string;
  readonly name: string;
  answered: boolean;
}

export class ConversationReader {
  readonly messages: JsonObject[] = [];
  readonly #faults: Faults;
  readonly #calls: MadeCall[] = [];

  constructor(faults: Faults) {
    this.#faults = faults;
  }

  /** Parts, or their content, or text. */
  system(value: JsonValue, field: string): void {
    const { parts = value } = isObject(value) ? camelCased(value) : {};
    const given = typeof parts === 'string' ? [{ text: parts }] : parts;
    const read = this.#parts(isObject(given) ? [given] : given, `${field}.parts`);
    this.messages.push({ role: 'system', content: this.#contentOf(read, `${field}.parts`) });
  }

  content(value: JsonValue, field: string): void {
    if (!this.#faults.expect(isObject(value), field, 'must be an object')) return;
    const { role = 'user', parts } = camelCased(value);
    const read = this.#parts(parts, `${field}.parts`);
    if (role === 'model') this.#model(read, `${field}.parts`);
    else if (role === 'user' || role === 'function') this.#user(read, `${field}.parts`);
    else this.#faults.add(`${field}.role`, 'must be one of user, model');
  }

  #parts(parts: JsonValue | undefined, field: string): JsonObject[] {
    const ok = Array.isArray(parts) && parts.length > 0 && parts.every(isObject);
    if (!this.#faults.expect(ok, field, 'must be an array of parts, with at least one')) return [];
    return arrayOf(parts).map(camelCased);
  }

  #user(parts: readonly JsonObject[], field: string): void {
    let said: JsonObject[] = [];
    const flush = (): void => {
      if (said.length > 0) this.messages.push({ role: 'user', content: this.#contentOf(said, field) });
      said = [];
    };
    for (const [i, part] of parts.entries()) {
      if (isObject(part['functionResponse'])) {
        flush();
        this.#response(camelCased(part['functionResponse']), `${field}[${i}].functionResponse`);
      } else {
        said.push(part);
      }
    }
    flush();
  }

  #model(parts: readonly JsonObject[], field: string): void {
    const said: string[] = [];
    const thought: string[] = [];
    let sealed: string | undefined;
    const calls: JsonObject[] = [];
    for (const [i, part] of parts.entries()) {
      const { text, thought: isThought, thoughtSignature: seal, functionCall: call } = part;
      if (typeof seal === 'string') sealed ??= openReasoning(seal);
      if (isObject(call)) calls.push(...this.#call(camelCased(call), `${field}[${i}].functionCall`));
      else if (typeof text === 'string') (isThought === true ? thought : said).push(text);
      else if (typeof seal !== 'string' || hasData(part)) this.#refuse(part, `${field}[${i}]`);
    }
    const reasoning = thought.join('') || sealed;
    const spoken = said.join('');
    this.messages.push({
      role: 'assistant',
      content: spoken === '' && calls.length > 0 ? null : spoken,
      ...(reasoning !== undefined && reasoning !== '' && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
    });
  }

  /** Calls without an id are numbered, so that the same conversation reads the same the next time. */
  #call({ id, name, args }: JsonObject, field: string): JsonObject[] {
    const named = textOf(name);
    if (!this.#faults.expect(named !== undefined, `${field}.name`, 'must be a string that is not empty'))
      return [];
    const given = args === undefined || args === null || isObject(args);
    if (!this.#faults.expect(given, `${field}.args`, 'must be an object')) return [];
    const made = { id: textOf(id) ?? `call_${this.#calls.length}`, name: named ?? '', answered: false };
    this.#calls.push(made);
    const called = { name: made.name, arguments: JSON.stringify(args ?? {}) };
    return [{ id: made.id, type: 'function', function: called }];
  }

  #response(given: JsonObject, field: string): void {
    const { id, name, response, parts } = given;
    const named = textOf(id) !== undefined;
    const call = this.#calls.find((one) => (named ? one.id === id : one.name === name && !one.answered));
    const how = named
      ? 'must be the id of a functionCall before it'
      : 'must be the name of a functionCall before it';
    if (!this.#faults.expect(call !== undefined, `${field}.${named ? 'id' : 'name'}`, how)) return;
    if (call !== undefined) call.answered = true;
    const isAnswer = response === undefined || response === null || isObject(response);
    this.#faults.expect(isAnswer, `${field}.response`, 'must be an object');
    const images = arrayOf(parts).map((part, i) => this.#mediaPart(camelCased(part), `${field}.parts[${i}]`));
    const text = answerOf(objectOf(response));
    const content = images.length === 0 ? text : [{ type: 'text', text }, ...images.flat()];
    this.messages.push({ role: 'tool', tool_call_id: call?.id ?? '', content });
  }

  /** Text alone is a string. */
  #contentOf(parts: readonly JsonObject[], field: string): JsonValue {
    const [first, ...others] = parts;
    if (others.length === 0 && typeof first?.['text'] === 'string') return first['text'];
    return parts.flatMap((part, i) =>
      typeof part['text'] === 'string'
        ? [{ type: 'text', text: part['text'] }]
        : this.#mediaPart(part, `${field}[${i}]`),
    );
  }

  #mediaPart(part: JsonObject, field: string): JsonObject[] {
    const { inlineData, fileData } = part;
    if (isObject(inlineData)) return this.#inline(camelCased(inlineData), `${field}.inlineData`);
    if (isObject(fileData)) return this.#file(camelCased(fileData), `${field}.fileData`);
    this.#refuse(part, field);
    return [];
  }

  #inline({ mimeType, data }: JsonObject, field: string): JsonObject[] {
    const type = textOf(mimeType) ?? '';
    if (!this.#faults.expect(type.startsWith('image/'), `${field}.mimeType`, 'must be a type of images'))
      return [];
    const fault = typeof data === 'string' ? dataFault(type, data) : 'must be a string';
    if (!this.#faults.expect(fault === undefined, `${field}.data`, fault ?? '')) return [];
    return [imagePart(`data:${type};base64,${data}`)];
  }

  #file({ mimeType, fileUri }: JsonObject, field: string): JsonObject[] {
    const type = textOf(mimeType) ?? 'image/*';
    if (!this.#faults.expect(type.startsWith('image/'), `${field}.mimeType`, 'must be a type of images'))
      return [];
    const ok =
      typeof fileUri === 'string' && !fileUri.startsWith('data:') && imageFault(fileUri) === undefined;
    if (!this.#faults.expect(ok, `${field}.fileUri`, 'must be an http or https URL')) return [];
    return [imagePart(String(fileUri))];
  }

  #refuse(part: JsonObject, field: string): void {
    const [held] = Object.keys(part);
    if (held === undefined || Object.hasOwn(PART_RULES, held))
      this.#faults.add(field, 'must hold one kind of data');
    else this.#faults.add(field, `${held}: ${PART_RULES['anything else']?.how}`);
  }
}

const imagePart = (url: string): JsonObject => ({ type: 'image_url', image_url: { url } });

/** Anything beside what says something about a part. */
const hasData = (part: JsonObject): boolean =>
  Object.keys(part).some((key) => key !== 'thought' && key !== 'thoughtSignature');

/** A function's answer as text: what it put out, or all of it. */
function answerOf(response: JsonObject): string {
  const { output, ...others } = response;
  return typeof output === 'string' && Object.keys(others).length === 0 ? output : JSON.stringify(response);
}
