// polar rebuild --builder NAME --calls IN.jsonl --traces OUT.jsonl
import { join } from 'node:path';
import process from 'node:process';
import { type Command, textFlag, UsageError } from '../arguments.ts';
import { inherited } from '../config.ts';
import { startChild } from '../mesh/child.ts';
import { ROOT } from '../services.ts';

export const rebuild: Command = {
  name: 'rebuild',
  summary: 'build exported calls again, with any builder and without a mesh',
  operands: [],
  flags: {
    builder: {
      type: 'string',
      value: 'NAME',
      help: 'per_request, prefix_merging, or the path of a module of your own; default: prefix_merging',
    },
    'builder-config': {
      type: 'string',
      value: 'JSON',
      help: 'configuration of the builder, or a JSON or YAML file with it',
    },
    'plugin-timeout': {
      type: 'string',
      value: 'SECONDS',
      help: 'longest that a module may take for one session; default: 30',
    },
    calls: { type: 'string', value: 'FILE', help: 'calls as `polar export --calls` writes them' },
    traces: { type: 'string', value: 'FILE', help: 'write the traces there' },
  },
  examples: [
    'polar export s0123456789ab-0 --calls -o calls.jsonl && polar rebuild --calls calls.jsonl --traces traces.jsonl',
    'polar rebuild --builder per_request --calls calls.jsonl --traces per-request.jsonl --json',
    `polar rebuild --builder-config '{"max_trace_tokens": 32768}' --calls calls.jsonl --traces traces.jsonl`,
  ],
  async run(args) {
    const given: string[] = [];
    for (const name of ['builder', 'builder-config', 'plugin-timeout', 'calls', 'traces']) {
      const value = textFlag(args, name);
      if (value !== undefined) given.push(`--${name}=${value}`);
      else if (name === 'calls' || name === 'traces') throw new UsageError(`--${name} is needed`);
    }
    const seconds = Number(textFlag(args, 'plugin-timeout') ?? 30);
    if (!(seconds > 0)) throw new UsageError('--plugin-timeout must be a number of seconds above 0');
    if (args.flags['json'] === true) given.push('--json');
    const child = startChild({
      command: process.execPath,
      args: [join(ROOT, 'services/reconstructor/rebuild.ts'), ...given],
      env: inherited,
      output: 'inherit',
    });
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void child.stop());
    return await child.ended;
  },
};
