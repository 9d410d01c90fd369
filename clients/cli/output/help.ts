// Help texts, made from the commands themselves.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { COMMON_FLAGS, type Command, type Flag } from '../arguments.ts';
import { ROOT } from '../services.ts';

const EXIT_CODES =
  'exit codes: 0 done, 1 failed, 2 wrong arguments or a faulty file, 3 the mesh cannot be reached';

export function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    'polar: rollouts for reinforcement learning on unmodified agent harnesses',
    '',
    'usage: polar COMMAND [arguments]',
    '',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'polar COMMAND --help says more; polar --version says which this is.',
    EXIT_CODES,
  ].join('\n');
}

/** Of this checkout, and of the Node.js that runs it. */
export const version = (): string => `polar ${versionNumber()} (Node.js ${process.version})`;

export function versionNumber(): string {
  const about = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  return about.version;
}

export function helpOf(command: Command): string {
  const flags = Object.entries<Flag>({ ...command.flags, ...COMMON_FLAGS });
  const shown = flags.map(([name, flag]) => [head(name, flag), flag.help] as const);
  const width = Math.max(...shown.map(([text]) => text.length));
  return [
    `polar ${command.name}: ${command.summary}`,
    '',
    `usage: ${['polar', command.name, ...command.operands, '[flags]'].join(' ')}`,
    '',
    ...shown.map(([text, help]) => `  ${text.padEnd(width)}  ${help}`),
    '',
    'examples:',
    ...command.examples.map((example) => `  ${example}`),
    '',
    EXIT_CODES,
  ].join('\n');
}

const head = (name: string, { short, value }: Flag): string =>
  `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`;
