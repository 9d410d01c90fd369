// The command line.
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { llamacpp } from './dialects/llamacpp.ts';
import { sglang } from './dialects/sglang.ts';
import { vllm } from './dialects/vllm.ts';
import type { EngineOptions } from './engine.ts';
import { readScript } from './script/schema.ts';
import { DEFAULT_SWITCHES, mergeSwitches, SWITCH_NAMES, scalar, someSwitchesSchema } from './switches.ts';

export const USAGE = `usage: npx node examples/scripted-engine/main.ts [options]
  --port N           default 0: a free one
  --host NAME        default 127.0.0.1
  --dialect NAME     sglang (default), vllm or llamacpp
  --script FILE      may be given often; README.md tells which is played
  --model NAME       name under /v1/models; default scripted-qwen3
  --lifeline         end when standard input ends
  --help
switches, described in README.md: ${SWITCH_NAMES.map((name) => `--${kebab(name)}`).join(' ')}
`;

const DIALECTS = { sglang, vllm, llamacpp };

export interface Options extends EngineOptions {
  readonly port: number;
  readonly host: string;
  readonly lifeline: boolean;
}

/** Throws an error with every fault; undefined when only help was asked for. */
export function readOptions(args: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string', default: '0' },
      host: { type: 'string', default: '127.0.0.1' },
      dialect: { type: 'string', default: 'sglang' },
      script: { type: 'string', multiple: true, default: [] },
      model: { type: 'string', default: 'scripted-qwen3' },
      lifeline: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      ...Object.fromEntries(SWITCH_NAMES.map((name) => [kebab(name), { type: 'string' as const }])),
    },
  });
  if (values.help) return undefined;
  return {
    port: check('--port', z.coerce.number().int().min(0).max(65_535), values.port),
    host: values.host,
    dialect: DIALECTS[check('--dialect', z.enum(['sglang', 'vllm', 'llamacpp']), values.dialect)],
    scripts: values.script.map(readScript),
    modelName: values.model,
    lifeline: values.lifeline,
    switches: mergeSwitches(DEFAULT_SWITCHES, check('switches', someSwitchesSchema, switchValues(values))),
  };
}

function switchValues(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = SWITCH_NAMES.map((name) => [name, values[kebab(name)]]).filter(
    ([, value]) => value !== undefined,
  );
  return Object.fromEntries(given.map(([name, value]) => [name, scalar(String(value))]));
}

function check<T extends z.ZodType>(what: string, schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Error(`${what}: ${z.prettifyError(parsed.error)}`);
}

function kebab(name: string): string {
  return name.replaceAll('_', '-');
}
