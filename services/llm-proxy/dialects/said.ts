// What a message or delta of an engine says, by whichever name.
import { type JsonObject, textOf } from '../domain/json.ts';

/** Reasoning goes by two names. */
export const reasoningIn = (said: JsonObject): string =>
  textOf(said['reasoning_content']) ?? textOf(said['reasoning']) ?? '';

/** Some APIs tell a refusal apart from the text that it stands for. */
export const textIn = (said: JsonObject): string | undefined =>
  textOf(said['content']) ?? textOf(said['refusal']);
