// A tool that a call chooses by its name, for engines that take words alone: `auto`, `none`, `required`.
import { type JsonObject, objectOf } from './json.ts';

/** What a call offers to a model, in the words of openai-chat. */
interface Offer {
  readonly tools: readonly JsonObject[];
  readonly fields: JsonObject;
}

/** The same with that tool alone, which is required; the offer itself where none is named. */
export function chosenAlone<T extends Offer>(offer: T): T {
  const { tool_choice: choice } = offer.fields;
  const { name } = objectOf(objectOf(choice)['function']);
  if (name === undefined) return offer;
  const tools = offer.tools.filter((tool) => objectOf(tool['function'])['name'] === name);
  return { ...offer, tools, fields: { ...offer.fields, tool_choice: 'required' } };
}
