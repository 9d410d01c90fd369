// What a chat template is given beside messages and tools. Two prompts extend each other only under equal settings.
import { shortKey } from '../../common/ids.ts';
import { rounded } from './exact-numbers.ts';
import { canonicalJson, type JsonObject } from './json.ts';

const FIELDS = ['chat_template_kwargs', 'reasoning_effort'] as const;

/** The settings among the fields of a request; some engines leave the tools out where none may be called. */
export function templateSettings(fields: JsonObject): JsonObject {
  const settings: JsonObject = {};
  for (const key of FIELDS) {
    const value = fields[key];
    if (value !== undefined && value !== null) settings[key] = value;
  }
  if (fields['tool_choice'] === 'none') settings['tool_choice'] = 'none';
  return settings;
}

/** One text for equal settings, be they recorded ones. */
export const settingsKey = (fields: JsonObject): string =>
  shortKey(canonicalJson(rounded(templateSettings(fields))));

const ONE_OFF = ['chat_template', 'add_generation_prompt', 'continue_final_message', 'documents', 'prompt'];

/** Whether a request changes what a template does for it alone, so that nothing can be built upon. */
export const isOneOff = (fields: JsonObject): boolean => ONE_OFF.some((key) => fields[key] !== undefined);
