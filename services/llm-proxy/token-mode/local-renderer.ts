// Rendering in this process, with the model's own tokenizer and chat template.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Template } from '@huggingface/jinja';
import { Tokenizer } from '@huggingface/tokenizers';
import { PolarError } from '../../common/errors.ts';
import { rounded } from '../domain/exact-numbers.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../domain/json.ts';
import { thinkingOf } from '../domain/template-sketch.ts';
import type { Render, Rendering } from './renderer.ts';

/** From a folder with tokenizer.json, tokenizer_config.json and the template. Throws INVALID_CONFIG. */
export function localRender(folder: string): Render {
  const { template, tokenizer, special } = load(folder);
  return async (rendering) => {
    const text = template.render({ ...special, ...contextOf(rendering), add_generation_prompt: true });
    return Int32Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids);
  };
}

interface Loaded {
  readonly template: Template;
  readonly tokenizer: Tokenizer;
  /** Special tokens as templates name them. */
  readonly special: JsonObject;
}

function load(folder: string): Loaded {
  try {
    const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
    const config = objectOf(JSON.parse(read('tokenizer_config.json')));
    const inFile = existsSync(join(folder, 'chat_template.jinja')) ? read('chat_template.jinja') : undefined;
    const source = inFile ?? textOf(config['chat_template']);
    if (source === undefined) throw new Error('it has no chat template');
    const tokenizer = new Tokenizer(JSON.parse(read('tokenizer.json')) as object, config);
    return { template: new Template(source), tokenizer, special: specialOf(config) };
  } catch (error) {
    const message = `gateway.nodes[].inference.tokenizer: ${folder}: ${(error as Error).message}`;
    throw new PolarError('INVALID_CONFIG', message, { cause: error });
  }
}

function specialOf(config: JsonObject): JsonObject {
  const special: JsonObject = {};
  for (const key of ['bos_token', 'eos_token', 'unk_token', 'pad_token']) {
    const token = textOf(config[key]) ?? textOf(objectOf(config[key])['content']);
    if (token !== undefined) special[key] = token;
  }
  return special;
}

function contextOf({ messages, tools, settings }: Rendering): JsonObject {
  const { chat_template_kwargs: more, ...named } = settings;
  const context: JsonObject = { ...named, ...objectOf(more), messages: messages.map(forTemplate) };
  if (tools.length > 0) context['tools'] = tools.map(rounded);
  return context;
}

/** As engines hand messages to a template: text parts are one text, arguments are values. */
function forTemplate(message: JsonValue): JsonObject {
  const { content, tool_calls: calls, ...rest } = objectOf(message);
  const turn: JsonObject = { ...rest, content: textIn(content) };
  if (turn['role'] === 'developer') turn['role'] = 'system';
  const thinking = typeof content === 'string' && content.includes('</think>') ? '' : thinkingOf(rest);
  if (thinking !== '') turn['reasoning_content'] = thinking;
  if (arrayOf(calls).length > 0) turn['tool_calls'] = arrayOf(calls).map(withArguments);
  return turn;
}

function textIn(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content;
  const texts = arrayOf(content).map((part) => objectOf(part)['text']);
  return texts.filter((text) => typeof text === 'string').join('\n');
}

function withArguments(call: JsonValue): JsonValue {
  const { function: called, ...rest } = objectOf(call);
  const named = objectOf(called);
  return { ...rest, function: { ...named, arguments: argumentsOf(named['arguments']) } };
}

function argumentsOf(given: JsonValue | undefined): JsonValue {
  if (typeof given !== 'string') return given ?? {};
  try {
    const value = JSON.parse(given) as JsonValue;
    return isObject(value) ? value : given;
  } catch {
    return given;
  }
}
