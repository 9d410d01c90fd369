// The dialects there are.
import { PolarError } from '../../common/errors.ts';
import type { DialectName } from '../domain/paths.ts';
import type { Dialect } from './dialect.ts';
import { openaiChat } from './openai-chat/dialect.ts';

const DIALECTS: Readonly<Partial<Record<DialectName, Dialect>>> = {
  'openai-chat': openaiChat,
};

export const DIALECT_NAMES = Object.keys(DIALECTS);

/** Throws NOT_FOUND. */
export function dialectOf(name: DialectName): Dialect {
  const dialect = DIALECTS[name];
  if (dialect === undefined) throw new PolarError('NOT_FOUND', `dialect ${name} is not offered`);
  return dialect;
}

/** In whose form an error is told, whatever was asked for. */
export const errorDialectOf = (name: DialectName): Dialect => DIALECTS[name] ?? openaiChat;
