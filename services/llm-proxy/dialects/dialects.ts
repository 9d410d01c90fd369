// The dialects there are.
import { PolarError } from '../../common/errors.ts';
import { arrayOf, type JsonObject } from '../domain/json.ts';
import { CONVERSATION_IN } from '../domain/known-body.ts';
import { Notes } from '../domain/notes.ts';
import type { DialectName, GenerateTarget } from '../domain/paths.ts';
import { anthropicMessages } from './anthropic-messages/dialect.ts';
import type { Asked, Dialect, KnownOfBody } from './dialect.ts';
import { type Allowed, invalid } from './faults.ts';
import { googleGenerate } from './google-generate/dialect.ts';
import { countValues } from './nesting.ts';
import { openaiChat } from './openai-chat/dialect.ts';
import { openaiResponses } from './openai-responses/dialect.ts';

const DIALECTS: Readonly<Partial<Record<DialectName, Dialect>>> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  'anthropic-messages': anthropicMessages,
  'google-generate': googleGenerate,
};

export const DIALECT_NAMES = Object.keys(DIALECTS);

/** Throws NOT_FOUND. */
export function dialectOf(name: DialectName): Dialect {
  const dialect = DIALECTS[name];
  if (dialect === undefined) throw new PolarError('NOT_FOUND', `dialect ${name} is not offered`);
  return dialect;
}

/** Messages, items or contents of one request; above: 400. */
export const MESSAGES_MAX = 50_000;

/** What a body asks for. */
export interface ReadRequest {
  readonly asked: Asked;
  /** JSON values that the body is made of. */
  readonly values: number;
}

/** Read a request of a dialect. Throws DIALECT_INVALID with every fault. */
export function readRequest(
  dialect: Dialect,
  body: JsonObject,
  target: GenerateTarget,
  allowed: Allowed,
  { found, notes = new Notes() }: KnownOfBody = {},
): ReadRequest {
  const member = CONVERSATION_IN[dialect.name];
  if (arrayOf(body[member]).length > MESSAGES_MAX) {
    throw invalid([{ field: member, description: `must have at most ${MESSAGES_MAX} elements` }]);
  }
  const values = countValues(body, notes);
  const asked = dialect.read(body, target, allowed, { found, notes });
  if (found !== undefined && asked.messages.length > MESSAGES_MAX) {
    throw invalid([{ field: member, description: `must go on from at most ${MESSAGES_MAX} messages` }]);
  }
  return { asked, values };
}

/** In whose form an error is told, whatever was asked for. */
export const errorDialectOf = (name: DialectName): Dialect => DIALECTS[name] ?? openaiChat;
