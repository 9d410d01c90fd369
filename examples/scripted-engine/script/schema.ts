// A script file: which turn comes at which point of a conversation.
import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { someSwitchesSchema } from '../switches.ts';

const path = z.string().min(1);
const callSchema = z.union([
  z.strictObject({ shell: z.string().min(1) }),
  z.strictObject({ read: path }),
  z.strictObject({ write: z.strictObject({ path, content: z.string() }) }),
  z.strictObject({ edit: z.strictObject({ path, old: z.string().min(1), new: z.string() }) }),
  /** As it stands, whether the request offers the tool or not. */
  z.strictObject({ tool: z.string().min(1), arguments: z.record(z.string(), z.unknown()).default({}) }),
]);
export type ScriptCall = z.output<typeof callSchema>;

const stepFields = {
  think: z.string().default(''),
  text: z.string().default(''),
  calls: z.array(callSchema).default([]),
  switches: someSwitchesSchema.optional(),
};
const saysSomething = (step: { text: string; calls: unknown[] }): boolean =>
  step.text !== '' || step.calls.length > 0;
const NOTHING_SAID = 'a step needs a text or a call';

const stepSchema = z.strictObject(stepFields).refine(saysSomething, NOTHING_SAID);
export type ScriptStep = z.output<typeof stepSchema>;

const variantSchema = z.strictObject({
  name: z.string().min(1),
  /** Of the sum of all shares, so many seeds play this variant. */
  share: z.int().min(1).default(1),
  steps: z.array(stepSchema).min(1),
});

const regex = z.string().transform((source, ctx) => {
  try {
    return new RegExp(source, 'i');
  } catch (error) {
    ctx.addIssue({ code: 'custom', message: (error as Error).message });
    return z.NEVER;
  }
});

/** A reply to what is no turn of the task: a summary, a title. Whatever is set must fit. */
const asideSchema = z
  .strictObject({
    /** The system messages. */
    system: regex.optional(),
    /** The last message, whoever said it. */
    last: regex.optional(),
    /** Whether the request offers tools. */
    tools: z.boolean().optional(),
    ...stepFields,
  })
  .refine(saysSomething, NOTHING_SAID);
export type Aside = z.output<typeof asideSchema>;

const scriptSchema = z.strictObject({
  /** Salt of the logprobs. */
  seed: z.int().default(0),
  /** Played where this matches a user message, from the last such message on; without it: anywhere. */
  when: regex.optional(),
  switches: someSwitchesSchema.optional(),
  variants: z.array(variantSchema).min(1),
  /** Looked at before the steps; no turns of theirs. */
  asides: z.array(asideSchema).default([]),
  /** What comes after the last step. */
  after: stepSchema.prefault({ text: 'There is nothing left to do.' }),
});
export type Script = z.output<typeof scriptSchema>;

/** Throws one error that lists every fault with its path. */
export function readScript(file: string): Script {
  return parseScript(readFileSync(file, 'utf8'), file);
}

export function parseScript(text: string, file: string): Script {
  const document = parseDocument(text);
  const broken = document.errors.map(({ message }) => message);
  if (broken.length > 0) throw new Error(`${file}: ${broken.join('\n')}`);
  const parsed = scriptSchema.safeParse(document.toJS());
  if (parsed.success) return parsed.data;
  throw new Error(`${file}:\n${z.prettifyError(parsed.error)}`);
}

/** Answers anything. */
export const DEFAULT_SCRIPT: Script = scriptSchema.parse({
  variants: [
    { name: 'default', steps: [{ text: 'I am a scripted engine, and my script has nothing for this.' }] },
  ],
});
